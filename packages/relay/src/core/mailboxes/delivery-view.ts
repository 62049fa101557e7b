import {
  type DeliveryView,
  formatInstant,
  isSettled,
  type LeaseView,
  type MailboxItem,
  type MailboxNotice,
  type Message,
} from "@a2a-relay/protocol";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { MessageRecord } from "../ports/messages.ts";
import { messageOf } from "../mechanisms/stored-json.ts";

/** A delivery as the API shows it. */
export function viewDelivery(delivery: DeliveryRecord): DeliveryView {
  const lease = viewLease(delivery);
  return {
    message_id: delivery.messageId,
    recipient: delivery.agentId,
    state: delivery.state,
    attempt: delivery.attempt,
    ...(delivery.deliveredAtMs === null ? {} : { delivered_at: formatInstant(delivery.deliveredAtMs) }),
    ...(isSettled(delivery.state) ? {} : { expires_at: formatInstant(delivery.expiresAtMs) }),
    ...(delivery.settledAtMs === null ? {} : { settled_at: formatInstant(delivery.settledAtMs) }),
    ...(delivery.reason === null ? {} : { reason: delivery.reason }),
    ...(lease === undefined ? {} : { lease }),
  };
}

export function viewLease(delivery: DeliveryRecord): LeaseView | undefined {
  if (delivery.state !== "leased" || delivery.leaseId === null || delivery.leasedAtMs === null) {
    return undefined;
  }
  return {
    id: delivery.leaseId,
    attempt: delivery.attempt,
    ...(delivery.worker === null ? {} : { worker: delivery.worker }),
    leased_at: formatInstant(delivery.leasedAtMs),
    ...(delivery.leaseExpiresAtMs === null ? {} : { expires_at: formatInstant(delivery.leaseExpiresAtMs) }),
  };
}

/** A delivery with its message, as readers and workers get it. */
export function viewMailboxItem({ delivery, message: record }: MailboxMessage): MailboxItem {
  const lease = viewLease(delivery);
  const message = messageOf(record);
  return {
    id: delivery.messageId,
    message_id: delivery.messageId,
    ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
    status: statusOf(delivery, lease),
    sender_agent_id: delivery.sender,
    message,
    a2a_payload: a2aPayloadOf(record, message),
    ...(lease === undefined ? {} : { lease }),
  };
}

/**
 * The message as the parameters of A2A's `message/send`, for mailbox clients that speak A2A JSON. Parts are
 * carried as they came; a plain body becomes one text part.
 */
function a2aPayloadOf(record: MessageRecord, { parts, body }: Message): MailboxItem["a2a_payload"] {
  const { id, sender, recipient, kind, threadId, taskId } = record;
  return {
    message: {
      kind: "message",
      role: "user",
      messageId: id,
      contextId: threadId,
      ...(taskId === null ? {} : { taskId }),
      parts: parts ?? [{ kind: "text", text: body }],
    },
    metadata: { sender_agent_id: sender, relay_target_agent_id: recipient, type: kind },
  };
}

export function viewNotice({ delivery, message }: MailboxMessage): MailboxNotice {
  const { type, subject, urgency } = messageOf(message);
  return {
    message_id: delivery.messageId,
    ...(delivery.taskId === null ? {} : { task_id: delivery.taskId }),
    sender_agent_id: delivery.sender,
    type,
    subject,
    urgency,
  };
}

function statusOf({ deliveredAtMs }: DeliveryRecord, lease: LeaseView | undefined): MailboxItem["status"] {
  return deliveredAtMs === null && lease === undefined ? "PENDING" : "DELIVERED";
}
