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

/** What an agent elsewhere said, as the verbs of a task take it. */
export interface RemoteContent {
  readonly text: string;
  readonly parts?: readonly Part[];
  readonly a2a_message?: Readonly<Record<string, unknown>>;
}

/** What is said becomes a message, which has room for little more than this. */
const WORDS_BYTES_MAX = LIMITS.bodyBytesMax / 2;
const CUT = " […]";

/** Members that a message has of its own wherever it is. */
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
  if (bytesOf(content) <= WORDS_BYTES_MAX) return content;
  const messageId = messageIdOf(content);
  return { text: cut(text), ...(messageId === undefined ? {} : { a2a_message: { messageId } }) };
}

/** By which the same content are known again; undefined where there is none, or none that an id can be. */
export function messageIdOf({ a2a_message: more }: RemoteContent): string | undefined {
  const id = more?.["messageId"];
  return typeof id === "string" && id !== "" && id.length <= LIMITS.idCharsMax ? id : undefined;
}

export function isSilent({ text, parts }: RemoteContent): boolean {
  return text === "" && parts === undefined;
}

/** The answer: what was said with the status, else what was made, else the last that the agent said at all. */
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

/** Why it did not work, with a word of ours where the agent has none. */
export function reasonOf(content: RemoteContent, otherwise: string): string {
  const text = content.text.trim() === "" ? otherwise : content.text;
  return text.slice(0, LIMITS.reasonCharsMax).toWellFormed();
}

/** Without anything in between: an artifact that was streamed has one part for each piece, in the middle of content. */
function textOfArtifact({ parts }: Artifact): string {
  return listOf(parts)
    .map((part) => textOfParts([part]))
    .join("");
}

/** Agents are strangers: where a list is promised there may be none. */
export function listOf<Item extends object>(value: readonly Item[] | undefined): readonly Item[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly Item[]).filter((item: unknown) => typeof item === "object" && item !== null);
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= WORDS_BYTES_MAX) return text;
  const bytes = Buffer.from(text).subarray(0, WORDS_BYTES_MAX - Buffer.byteLength(CUT));
  return new TextDecoder().decode(bytes, { stream: true }) + CUT;
}

function bytesOf(content: RemoteContent): number {
  return Buffer.byteLength(JSON.stringify(content));
}

/**
 * What the agent said between two looks, oldest first: it stands in the history of its task and is not on record yet.
 * What has no id cannot be told from what is, and is left out; so is what is put on record with the status itself.
 */
export async function saidBetween(
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
    if (id !== undefined && isOf(theirs, message) && !isSilent(content)) said.set(id, content);
  }
  for (const id of [messageIdOf(newest), messageIdOf(contentOf(theirs.status.message))]) {
    if (id !== undefined) said.delete(id);
  }
  await forgetRecorded(store, ours, said);
  return [...said.values()];
}

/** Some agents keep what was said in the whole context with each of its tasks. */
function isOf({ id }: A2aTask, { role, taskId }: A2aMessage): boolean {
  return role === "ROLE_AGENT" && (typeof taskId !== "string" || taskId === "" || taskId === id);
}

/** From the newest step on: as a rule all of them are among the last few. */
async function forgetRecorded(
  store: RelayStore,
  ours: TaskRecord,
  said: Map<string, unknown>,
): Promise<void> {
  const { tenant, id: taskId } = ours;
  const page = { statusOnly: true, limit: 2 * HISTORY_LENGTH, bytesMax: LIMITS.answerBytesMax };
  for (let untilN = ours.updateCount; untilN > 0 && said.size > 0;) {
    const { updates, hasMore } = await store.lastTaskUpdates({ tenant, taskId, untilN, ...page });
    for (const { step } of updates) {
      const id = step.kind === "status" ? step.said?.a2aMessage?.["messageId"] : undefined;
      if (typeof id === "string") said.delete(id);
    }
    untilN = hasMore ? (updates.at(-1)?.n ?? 0) - 1 : 0;
  }
}
