import { type A2aMessage, type A2aTask, type AgentId, type Part } from "@a2a-relay/protocol";
import { contentDigest, parseMessageDraft, type TaskNaming } from "../messages/message-draft.ts";
import type { SendResult } from "../messages/decide-send.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { A2aCaller } from "./a2a-caller.ts";
import type { A2aSendRequest } from "./a2a-request.ts";
import { threadOfContext } from "../tasks/context-id.ts";
import { a2aMessageOf, a2aTaskOf } from "../tasks/a2a-view.ts";

/** The message that an A2A message is. What the mailbox has no word for goes with it, for whoever reads it there. */
export function messageOf(
  { idempotencyKey }: A2aCaller,
  { message, metadata, configuration }: A2aSendRequest,
  { to, known }: { readonly to: AgentId; readonly known: TaskRecord | undefined },
): Readonly<Record<string, unknown>> {
  const { parts, contextId, taskId: _taskId, role: _role, ...rest } = message;
  const from = senderIn(metadata) ?? senderIn(message.metadata);
  const modes = configuration?.acceptedOutputModes ?? [];
  return {
    type: "request",
    to,
    ...(from === undefined ? {} : { from }),
    ...contentOf(parts),
    ...placeOf(contextId, known),
    ...(Object.keys(rest).length === 0 ? {} : { a2a_message: rest }),
    ...(metadata === undefined ? {} : { a2a_metadata: metadata }),
    ...(modes.length === 0 ? {} : { accepted_output_modes: modes }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
  };
}

/** A text alone is kept once, as the body; of more than that the body is drawn when the message is read. */
function contentOf(parts: readonly Part[]): { readonly body: string } | { readonly parts: readonly Part[] } {
  const [part = {}] = parts;
  const { text } = part;
  const isBare =
    parts.length === 1 && typeof text === "string" && text !== "" && Object.keys(part).length === 1;
  return isBare ? { body: text } : { parts };
}

/** The task that the message adds to, or else the context that its caller chose. */
function placeOf(
  contextId: string | undefined,
  known: TaskRecord | undefined,
): Readonly<Record<string, string>> {
  if (known !== undefined) return { task_id: known.id, thread_id: known.threadId };
  return contextId === undefined || contextId === "" ? {} : { thread_id: threadOfContext(contextId) };
}

/** Whom an operator writes for; an agent may name only itself. */
function senderIn(metadata: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const sender = metadata?.["sender_agent_id"];
  return typeof sender === "string" && sender !== "" ? sender : undefined;
}

export function namingOf({ clientTaskId }: A2aSendRequest, message: object): TaskNaming | undefined {
  if (clientTaskId === undefined) return undefined;
  return { clientTaskId, digest: contentDigest(parseMessageDraft(message)) };
}

/** A task that was only asked for, without reading it back. */
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
  const history = configuration?.historyLength === 0 ? undefined : [asked];
  const begun = a2aTaskOf(task as TaskRecord, { status, history, artifacts: undefined });
  return caller.version === "0.1" && clientTaskId !== undefined ? { ...begun, id: clientTaskId } : begun;
}
