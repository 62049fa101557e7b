import {
  type A2aMessage,
  type A2aRole,
  type A2aStatus,
  type A2aStreamResponse,
  type A2aTask,
  type Artifact,
  formatInstant,
  type Message,
  type Part,
  toA2aState,
} from "@a2a-relay/protocol";
import type { ArtifactStep, Said, StatusStep, TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { contextOfThread } from "./context-id.ts";

/** Where a message belongs. */
type Place = Pick<TaskRecord, "id" | "threadId">;

/** Members that the relay writes itself, whatever a message brought under their names. */
const OWN_MEMBERS = new Set(["role", "parts", "taskId", "contextId", "kind"]);

/** A message about a task as an A2A message: its parts as they came, and all that its writer said beside them. */
export function a2aMessageOf(message: Message, role: A2aRole, place: Place): A2aMessage {
  const more = message["a2a_message"] as Readonly<Record<string, unknown>> | undefined;
  const parts = message.parts ?? [{ text: message.body }];
  return messageIn(place, role, { id: message.id, parts, more });
}

/** The step as those who follow the task see it; undefined for what only its history shows. */
export function a2aEventOf(task: TaskRecord, update: TaskUpdate): A2aStreamResponse | undefined {
  const { id: taskId } = task;
  const contextId = contextOfThread(task.threadId);
  const { step } = update;
  if (step.kind === "message") return undefined;
  const more = step.metadata === undefined ? {} : { metadata: step.metadata };
  if (step.kind === "status") {
    return { statusUpdate: { taskId, contextId, status: a2aStatusOf(task, step, update), ...more } };
  }
  return { artifactUpdate: { taskId, contextId, ...artifactOf(step), ...more } };
}

/** The status that a step put the task into. */
export function a2aStatusOf(
  task: Place,
  { state, said }: StatusStep,
  { n, atMs }: Pick<TaskUpdate, "n" | "atMs">,
): A2aStatus {
  return {
    state: toA2aState(state),
    timestamp: formatInstant(atMs),
    ...(said === undefined ? {} : { message: saidMessage(task, said, n) }),
  };
}

/** What was said with the n-th step. A message without an id of its own is named after the step, always the same. */
export function saidMessage(task: Place, said: Said, n: number): A2aMessage {
  const { text, parts = [{ text }], messageId: id = `${task.id}.${n}`, a2aMessage: more } = said;
  return messageIn(task, "ROLE_AGENT", { id, parts, more });
}

export function a2aTaskOf(
  task: TaskRecord,
  shown: {
    readonly status: A2aStatus | undefined;
    readonly history: readonly A2aMessage[] | undefined;
    readonly artifacts: readonly Artifact[] | undefined;
  },
): A2aTask {
  const { history, artifacts } = shown;
  const status = shown.status ?? {
    state: toA2aState(task.state),
    timestamp: formatInstant(task.updatedAtMs),
  };
  return {
    id: task.id,
    contextId: contextOfThread(task.threadId),
    status,
    ...(artifacts === undefined || artifacts.length === 0 ? {} : { artifacts }),
    ...(history === undefined || history.length === 0 ? {} : { history }),
  };
}

function artifactOf({ artifact, append, lastChunk }: ArtifactStep): Omit<ArtifactStep, "kind" | "metadata"> {
  return { artifact, append, lastChunk };
}

function messageIn(
  { id: taskId, threadId }: Place,
  role: A2aRole,
  said: {
    readonly id: string;
    readonly parts: readonly Part[];
    readonly more: Readonly<Record<string, unknown>> | undefined;
  },
): A2aMessage {
  const message: Record<string, unknown> = { messageId: said.id };
  for (const member in said.more) if (!OWN_MEMBERS.has(member)) message[member] = said.more[member];
  return {
    ...(message as { messageId: string }),
    role,
    parts: said.parts,
    taskId,
    contextId: contextOfThread(threadId),
  };
}
