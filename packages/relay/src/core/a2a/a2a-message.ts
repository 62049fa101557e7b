import { type A2aMessage, type A2aTask, type AgentId, type Part } from "@a2a-relay/protocol";
import { contentDigest, parseMessageDraft, type TaskNaming } from "../messages/message-draft.ts";
import { memberJson } from "../mailboxes/json-member.ts";
import type { SendAnswer } from "../messages/send-planner.ts";
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

/** A task of which no more is known than that it was asked for. */
export interface BegunTask {
  readonly task: A2aTask;
  /** The answer that it is, as JSON for a caller of 1.0, where the message need not be written again for it. */
  readonly json: string | undefined;
}

/** All that is known of a task that was only asked for, without reading it back. */
export function begunTask(
  { created, message, messageJson, receipt }: SendAnswer,
  caller: A2aCaller,
  { clientTaskId, configuration }: A2aSendRequest,
): BegunTask | undefined {
  const id = receipt.task_id;
  if (!created || id === undefined) return undefined;
  const place = { id, threadId: receipt.thread_id };
  const asked: A2aMessage = a2aMessageOf(message, "ROLE_USER", place);
  const status = { state: "TASK_STATE_SUBMITTED", timestamp: message.created_at } as const;
  const history = configuration?.historyLength === 0 ? undefined : [asked];
  const task = a2aTaskOf(place as TaskRecord, { status, history, artifacts: undefined });
  const shown = caller.version === "0.1" && clientTaskId !== undefined ? { ...task, id: clientTaskId } : task;
  const isText = caller.version === "1.0" && history !== undefined && message.parts === undefined;
  const text = isText ? memberJson(messageJson, "body") : undefined;
  return { task: shown, json: text === undefined ? undefined : begunJson(task, asked, text) };
}

/** `text`: the only part of what was asked, as it stands in the stored message. */
function begunJson(begun: A2aTask, asked: A2aMessage, text: string): string {
  const { history: _history, ...task } = begun;
  const { parts: _parts, ...message } = asked;
  const history = `[${withMember(message, "parts", `[{"text":${text}}]`)}]`;
  return `{"task":${withMember(task, "history", history)}}`;
}

/** The JSON of an object that has members already, with one more. */
function withMember(object: object, name: string, json: string): string {
  return `${JSON.stringify(object).slice(0, -1)},"${name}":${json}}`;
}
