import {
  type DeliveryView,
  formatInstant,
  isSettled,
  type LeaseView,
  type MailboxItem,
  type MailboxNotice,
  type Message,
} from "@a2a-relay/protocol";
import { a2aPayloadJson } from "./a2a-payload.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";

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

/** MailboxMessage as the API shows it. */
export function viewMailboxItem(mail: MailboxMessage): MailboxItem {
  return JSON.parse(mailJson(mail)) as MailboxItem;
}

/** The same as JSON text. The message is JSON already; to read and write it again would cost more than all the rest. */
export function mailJson(mail: MailboxMessage): string {
  const { delivery } = mail;
  const lease = viewLease(delivery);
  const id = JSON.stringify(delivery.messageId);
  const task = delivery.taskId === null ? "" : `"task_id":${JSON.stringify(delivery.taskId)},`;
  const held = lease === undefined ? "" : `,"lease":${JSON.stringify(lease)}`;
  return (
    `{"id":${id},"message_id":${id},${task}"status":"${statusOf(delivery, lease)}",` +
    `"sender_agent_id":${JSON.stringify(delivery.sender)},` +
    `"message":${mail.message.json},"a2a_payload":${a2aPayloadJson(mail.message)}${held}}`
  );
}

export function viewNotice({ delivery, message: { json } }: MailboxMessage): MailboxNotice {
  const { type, subject, urgency } = JSON.parse(json) as Message;
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
