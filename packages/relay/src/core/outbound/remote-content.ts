import {
  type A2aMessage,
  type A2aTask,
  type Artifact,
  LIMITS,
  type Part,
  type TaskState,
  textOfParts,
} from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { HISTORY_LENGTH } from "./remote-message.ts";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

/** A message of a remote agent, in the form that `TaskService` takes. */
export interface RemoteContent {
  readonly text: string;
  readonly parts?: readonly Part[];
  readonly a2a_message?: Readonly<Record<string, unknown>>;
}

/** The content becomes the body of a message, which has little more room. */
const CONTENT_BYTES_MAX = LIMITS.bodyBytesMax / 2;
const CUT = " […]";

/** Members that belong to the message at the agent, not to its copy here. */
const OWN_MEMBERS = new Set(["role", "parts", "taskId", "contextId", "kind", "referenceTaskIds"]);

export function contentOf(message: A2aMessage | undefined): RemoteContent {
  const parts = listOf(message?.parts);
  const text = textOfParts(parts);
  const more = Object.entries(message ?? {}).filter(([member]) => !OWN_MEMBERS.has(member));
  const hasParts = parts.length > 0 && parts.length <= LIMITS.partsMax;
  const content = {
    text,
    ...(hasParts ? { parts } : {}),
    ...(more.length === 0 ? {} : { a2a_message: Object.fromEntries(more) }),
  };
  if (bytesAsJson(content) <= CONTENT_BYTES_MAX) return content;
  const messageId = messageIdOf(content);
  return { text: cut(text), ...(messageId === undefined ? {} : { a2a_message: { messageId } }) };
}

/** Undefined without an id, or with one that is no valid id here. */
export function messageIdOf({ a2a_message: more }: RemoteContent): string | undefined {
  const id = more?.["messageId"];
  return typeof id === "string" && id !== "" && id.length <= LIMITS.idCharsMax ? id : undefined;
}

export function isSilent({ text, parts }: RemoteContent): boolean {
  return text === "" && parts === undefined;
}

/** The message of the status, else the text of the artifacts, else the agent's last message. */
export function resultOf({ status, artifacts, history }: A2aTask): RemoteContent {
  const said = contentOf(status.message);
  if (!isSilent(said)) return said;
  const made = listOf(artifacts)
    .map(textOfArtifact)
    .filter((text) => text !== "");
  if (made.length > 0) return { text: cut(made.join("\n")) };
  const last = listOf(history).findLast(({ role }) => role === "ROLE_AGENT");
  const content = contentOf(last);
  return isSilent(content) ? { text: "done" } : content;
}

/** The agent's reason for a failure, or `otherwise` where it gave none. */
export function reasonOf(content: RemoteContent, otherwise: string): string {
  const text = content.text.trim() === "" ? otherwise : content.text;
  return text.slice(0, LIMITS.reasonCharsMax).toWellFormed();
}

/** Without separators: a streamed artifact has one part per chunk, cut anywhere. */
function textOfArtifact({ parts }: Artifact): string {
  return listOf(parts)
    .map((part) => textOfParts([part]))
    .join("");
}

/** Remote agents may send something else where A2A has a list. */
export function listOf<Item extends object>(value: readonly Item[] | undefined): readonly Item[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly Item[]).filter((item: unknown) => typeof item === "object" && item !== null);
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= CONTENT_BYTES_MAX) return text;
  const bytes = Buffer.from(text).subarray(0, CONTENT_BYTES_MAX - Buffer.byteLength(CUT));
  return new TextDecoder().decode(bytes, { stream: true }) + CUT;
}

/**
 * The agent's messages since the last poll, oldest first: those in the history of its task that our task does not
 * have. Leaves out messages without an id, and the one that is recorded with the status.
 */
export async function unrecordedMessages(
  store: RelayStore,
  ours: TaskRecord,
  theirs: A2aTask,
  state: TaskState,
): Promise<readonly RemoteContent[]> {
  const newest = state === "completed" ? resultOf(theirs) : contentOf(theirs.status.message);
  const said = new Map<string, RemoteContent>();
  for (const message of listOf(theirs.history).slice(-HISTORY_LENGTH)) {
    const content = contentOf(message);
    const id = messageIdOf(content);
    if (id !== undefined && isOfAgent(theirs, message) && !isSilent(content)) said.set(id, content);
  }
  for (const id of [messageIdOf(newest), messageIdOf(contentOf(theirs.status.message))]) {
    if (id !== undefined) said.delete(id);
  }
  await removeRecorded(store, ours, said);
  return [...said.values()];
}

/** Some agents put the messages of the whole context into the history of each task. */
function isOfAgent({ id }: A2aTask, { role, taskId }: A2aMessage): boolean {
  return role === "ROLE_AGENT" && (typeof taskId !== "string" || taskId === "" || taskId === id);
}

/** Reads our task's updates from the newest on: most recorded messages are among the last few. */
async function removeRecorded(
  store: RelayStore,
  ours: TaskRecord,
  said: Map<string, unknown>,
): Promise<void> {
  const { tenant, id: taskId } = ours;
  const page = { statusOnly: true, limit: 2 * HISTORY_LENGTH, bytesMax: LIMITS.answerBytesMax };
  for (let untilN = ours.updateCount; untilN > 0 && said.size > 0;) {
    const { updates, hasMore } = await store.tasks.lastUpdates({ tenant, taskId, untilN, ...page });
    for (const { step } of updates) {
      const id = step.kind === "status" ? step.said?.a2aMessage?.["messageId"] : undefined;
      if (typeof id === "string") said.delete(id);
    }
    untilN = hasMore ? (updates.at(-1)?.n ?? 0) - 1 : 0;
  }
}
