import {
  type A2aMessage,
  type A2aRole,
  type A2aStatus,
  type A2aStreamResponse,
  type A2aTask,
  type Artifact,
  formatInstant,
  LIMITS,
  type Message,
  parseRecordId,
  type Part,
  RelayError,
  toA2aState,
} from "@a2a-relay/protocol";
import type { Said, StatusStep, TaskRecord, TaskUpdate } from "../ports/tasks.ts";

/** The task and thread that an A2A message names. */
type TaskRef = Pick<TaskRecord, "id" | "threadId">;

/** The relay writes these members itself and ignores what a message brought under their names. */
const RELAY_MEMBERS = new Set(["role", "parts", "taskId", "contextId", "kind"]);

/** A message about a task, with its own parts and with all other A2A members that its author gave it. */
export function a2aMessageOf(message: Message, role: A2aRole, task: TaskRef): A2aMessage {
  const more = message["a2a_message"] as Readonly<Record<string, unknown>> | undefined;
  const parts = message.parts ?? [{ text: message.body }];
  return messageIn(task, role, { id: message.id, parts, more });
}

/** The update as a stream event; undefined for messages, which only the history contains. */
export function a2aEventOf(task: TaskRecord, update: TaskUpdate): A2aStreamResponse | undefined {
  const { id: taskId } = task;
  const contextId = contextOfThread(task.threadId);
  const { step } = update;
  if (step.kind === "message") return undefined;
  const metadata = step.metadata === undefined ? {} : { metadata: step.metadata };
  if (step.kind === "status") {
    return { statusUpdate: { taskId, contextId, status: a2aStatusOf(task, step, update), ...metadata } };
  }
  const { artifact, append, lastChunk } = step;
  return { artifactUpdate: { taskId, contextId, artifact, append, lastChunk, ...metadata } };
}

export function a2aStatusOf(
  task: TaskRef,
  { state, said }: StatusStep,
  { n, atMs }: Pick<TaskUpdate, "n" | "atMs">,
): A2aStatus {
  return {
    state: toA2aState(state),
    timestamp: formatInstant(atMs),
    ...(said === undefined ? {} : { message: saidMessage(task, said, n) }),
  };
}

/** The message of the n-th update. Without an id it gets one made of the task's id and `n`, the same on every read. */
export function saidMessage(task: TaskRef, said: Said, n: number): A2aMessage {
  const { text, parts = [{ text }], messageId: id = `${task.id}.${n}`, a2aMessage: more } = said;
  return messageIn(task, "ROLE_AGENT", { id, parts, more });
}

export function a2aTaskOf(
  task: TaskRecord,
  content: {
    readonly status: A2aStatus | undefined;
    readonly history: readonly A2aMessage[];
    readonly artifacts: readonly Artifact[];
  },
): A2aTask {
  const { history, artifacts } = content;
  const status = content.status ?? {
    state: toA2aState(task.state),
    timestamp: formatInstant(task.updatedAtMs),
  };
  return {
    id: task.id,
    contextId: contextOfThread(task.threadId),
    status,
    ...(artifacts.length === 0 ? {} : { artifacts }),
    ...(history.length === 0 ? {} : { history }),
  };
}

function messageIn(
  { id: taskId, threadId }: TaskRef,
  role: A2aRole,
  content: {
    readonly id: string;
    readonly parts: readonly Part[];
    readonly more: Readonly<Record<string, unknown>> | undefined;
  },
): A2aMessage {
  const more = Object.entries(content.more ?? {}).filter(([member]) => !RELAY_MEMBERS.has(member));
  return {
    messageId: content.id,
    ...Object.fromEntries(more),
    role,
    parts: content.parts,
    taskId,
    contextId: contextOfThread(threadId),
  };
}

/** Begins the thread id of a context whose own text is no valid thread id. */
const ENCODED = "ctx~";
const ENCODED_BYTES_MAX = Math.floor(((LIMITS.idCharsMax - ENCODED.length) * 3) / 4);

/**
 * The thread of a context. A2A callers may choose any text as a context id, while thread ids appear in paths and logs
 * and have a grammar. The relay encodes other texts in base64url and decodes them in its answers.
 */
export function threadOfContext(contextId: string): string {
  if (isThreadId(contextId) && !contextId.startsWith(ENCODED)) return contextId;
  const threadId = ENCODED + Buffer.from(contextId).toString("base64url");
  if (threadId.length <= LIMITS.idCharsMax && contextId.isWellFormed()) return threadId;
  throw new RelayError(
    "invalid_argument",
    `message.contextId: at most ${LIMITS.idCharsMax} characters and digits, or ${ENCODED_BYTES_MAX} bytes of any text`,
  );
}

export function contextOfThread(threadId: string): string {
  return threadId.startsWith(ENCODED)
    ? Buffer.from(threadId.slice(ENCODED.length), "base64url").toString()
    : threadId;
}

function isThreadId(contextId: string): boolean {
  try {
    parseRecordId(contextId, "contextId");
    return true;
  } catch {
    return false;
  }
}
