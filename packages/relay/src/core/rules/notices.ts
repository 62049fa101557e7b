import { type AgentId, POSTMASTER } from "@a2a-relay/protocol";
import type { Identifiers } from "../ports/ids.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { createMessage, type CreatedMessage, type NewMessage } from "./new-message.ts";
import type { MessageRecord } from "../ports/messages.ts";
import { messageOf } from "../mechanisms/stored-json.ts";

/** What the relay itself needs to write a message. */
export interface MessageDefaults {
  readonly ids: Identifiers;
  readonly nowMs: number;
  readonly messageTtlMs: number;
}

/** Tells the sender why its message was not delivered. Never sent about quiet messages: no notice about a notice. */
export function undeliverableNotice(
  defaults: MessageDefaults,
  original: MessageRecord,
  delivery: DeliveryRecord,
): CreatedMessage {
  const subject = subjectOf(original);
  return createMessage({
    ...relayMessage(defaults, original.tenant, original.sender),
    subject: `Undeliverable: ${subject}`.slice(0, SUBJECT_CHARS).toWellFormed(),
    body: [
      `Your ${original.kind} "${subject}" to ${delivery.agentId} is ${delivery.state}: ${delivery.reason ?? ""}.`,
      `Message: ${original.id}. No agent will act on it any more; send it again if it still matters.`,
    ].join("\n"),
    threadId: original.threadId,
    taskId: original.taskId ?? undefined,
    replyTo: original.id,
    more: { notice: { delivery_state: delivery.state, reason: delivery.reason } },
  });
}

/** Tells the lease holder that the work is no longer wanted. */
export function canceledNotice(defaults: MessageDefaults, task: TaskRecord, reason: string): CreatedMessage {
  return createMessage({
    ...relayMessage(defaults, task.tenant, task.assignee),
    subject: `Canceled: ${task.subject}`.slice(0, SUBJECT_CHARS).toWellFormed(),
    body: `Task ${task.id} was canceled: ${reason}. Stop working on it; a result will be refused.`,
    threadId: task.threadId,
    taskId: task.id,
    replyTo: task.messageId,
    more: { task_state: "canceled", notice: { task_state: "canceled", reason } },
  });
}

const SUBJECT_CHARS = 200;

function relayMessage(
  defaults: MessageDefaults,
  tenant: string,
  recipient: AgentId,
): Omit<NewMessage, "subject" | "body" | "threadId" | "taskId" | "replyTo" | "more"> {
  return {
    tenant,
    id: defaults.ids.message(),
    sender: POSTMASTER,
    recipient,
    kind: "status",
    purpose: "mail",
    acceptedAtMs: defaults.nowMs,
    expiresAtMs: defaults.nowMs + defaults.messageTtlMs,
    duplicateSafety: "idempotent",
    idempotencyKey: undefined,
    quiet: true,
    reservedFor: undefined,
  };
}

function subjectOf(message: MessageRecord): string {
  return messageOf(message).subject;
}
