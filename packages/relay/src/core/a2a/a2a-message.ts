import {
  A2aError,
  type A2aMessage,
  type A2aStreamResponse,
  type A2aTask,
  type AgentId,
  type Part,
  toV1Part,
} from "@a2a-relay/protocol";
import { contentDigest, parseMessageDraft, type TaskNaming } from "../messages/message-draft.ts";
import type { SendResult } from "../messages/decide-send.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { a2aMessageOf, a2aTaskOf, threadOfContext } from "../tasks/a2a-view.ts";
import type { A2aCaller, A2aSendRequest } from "./a2a-request.ts";

/**
 * The request that the relay sends for an A2A message. A2A members without a counterpart go along as `a2a_message` and
 * `a2a_metadata`, so that the recipient can read them.
 */
export function messageOf(
  { idempotencyKey }: A2aCaller,
  { message, metadata, configuration }: A2aSendRequest,
  { to, task }: { readonly to: AgentId; readonly task: TaskRecord | undefined },
): Readonly<Record<string, unknown>> {
  const { parts, contextId, taskId: _taskId, role: _role, ...rest } = message;
  const from = senderIn(metadata) ?? senderIn(message.metadata);
  const modes = configuration?.acceptedOutputModes ?? [];
  return {
    type: "request",
    to,
    ...(from === undefined ? {} : { from }),
    ...contentOf(parts),
    ...threadOf(contextId, task),
    ...(Object.keys(rest).length === 0 ? {} : { a2a_message: rest }),
    ...(metadata === undefined ? {} : { a2a_metadata: metadata }),
    ...(modes.length === 0 ? {} : { accepted_output_modes: modes }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
  };
}

/** A single text is stored once, as the body. Other parts are stored as they are, and readers derive the body. */
function contentOf(parts: readonly Part[]): { readonly body: string } | { readonly parts: readonly Part[] } {
  const [part = {}] = parts;
  const { text } = part;
  const isBare =
    parts.length === 1 && typeof text === "string" && text !== "" && Object.keys(part).length === 1;
  return isBare ? { body: text } : { parts };
}

/** The task that the message adds to, or else the context that its caller chose. */
function threadOf(
  contextId: string | undefined,
  task: TaskRecord | undefined,
): Readonly<Record<string, string>> {
  if (task !== undefined) return { task_id: task.id, thread_id: task.threadId };
  return contextId === undefined || contextId === "" ? {} : { thread_id: threadOfContext(contextId) };
}

/** The sender that an operator names; an agent may name only itself. */
function senderIn(metadata: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const sender = metadata?.["sender_agent_id"];
  return typeof sender === "string" && sender !== "" ? sender : undefined;
}

export function namingOf({ clientTaskId }: A2aSendRequest, message: object): TaskNaming | undefined {
  if (clientTaskId === undefined) return undefined;
  return { clientTaskId, digest: contentDigest(parseMessageDraft(message)) };
}

/** The new task of a message that was just sent. Reading it back costs such a call 13 % more. */
export function begunTask(
  { created, message, receipt }: SendResult,
  caller: A2aCaller,
  { clientTaskId, configuration }: A2aSendRequest,
): A2aTask | undefined {
  const id = receipt.task_id;
  if (!created || id === undefined) return undefined;
  const task = { id, threadId: receipt.thread_id };
  const asked: A2aMessage = a2aMessageOf(message, "ROLE_USER", task);
  const status = { state: "TASK_STATE_SUBMITTED", timestamp: message.created_at } as const;
  const history = configuration?.historyLength === 0 ? [] : [asked];
  const begun = a2aTaskOf(task as TaskRecord, { status, history, artifacts: [] });
  return caller.version === "0.1" && clientTaskId !== undefined ? { ...begun, id: clientTaskId } : begun;
}

/**
 * Refuses an answer that would break A2A libraries. The relay stores what agents say without this check, because
 * other wires accept parts of any form.
 */
export function assertAnswer({ task, message, statusUpdate, artifactUpdate }: A2aStreamResponse): void {
  const { history = [], artifacts = [] } = task ?? {};
  const fromAgent = history.filter(({ role }) => role === "ROLE_AGENT");
  const messages = [task?.status.message, ...fromAgent, message, statusUpdate?.status.message];
  const parts = [
    ...messages.flatMap((each) => each?.parts ?? []),
    ...artifacts.flatMap((artifact) => artifact.parts),
    ...(artifactUpdate?.artifact.parts ?? []),
  ];
  const foreign = parts.find((part) => !hasContent(toV1Part(part)));
  if (foreign === undefined) return;
  const names = Object.keys(foreign).slice(0, 5).join(", ") || "nothing";
  throw new A2aError(
    "InvalidAgentResponse",
    `the agent answered with a part that is none of A2A: it has ${names}, and no text, raw, url or data`,
  );
}

function hasContent(part: Part): boolean {
  const isText = (member: string): boolean => typeof part[member] === "string";
  return isText("text") || isText("raw") || isText("url") || Object.hasOwn(part, "data");
}
