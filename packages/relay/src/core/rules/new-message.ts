import {
  type AgentId,
  type DuplicateSafety,
  formatInstant,
  LIMITS,
  type Message,
  MESSAGE_VERSION,
  type MessageKind,
  RelayError,
} from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { EventDraft } from "../ports/journal.ts";
import type { DeliveryPurpose, DeliveryRecord } from "../ports/deliveries.ts";
import { digestOfText } from "./digest.ts";
import { bytesAsJson, toStoredJson } from "../mechanisms/stored-json.ts";

/** All that a message and its delivery are made of. */
export interface NewMessage {
  readonly tenant: string;
  readonly id: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly kind: MessageKind;
  readonly subject: string;
  readonly body: string;
  readonly threadId: string;
  readonly taskId: string | undefined;
  readonly purpose: DeliveryPurpose;
  readonly replyTo: string | undefined;
  readonly acceptedAtMs: number;
  readonly expiresAtMs: number;
  readonly duplicateSafety: DuplicateSafety;
  readonly idempotencyKey: string | undefined;
  readonly quiet: boolean;
  readonly reservedFor: string | undefined;
  /** The task whose result it is held for. */
  readonly heldFor?: string | undefined;
  /** The sender's other members, kept as they came. */
  readonly more: Readonly<Record<string, unknown>>;
}

export interface CreatedMessage {
  readonly message: Message;
  readonly changes: Pick<Required<Changes>, "messages" | "deliveries" | "events">;
}

/** The records of a new message: the message, its delivery and the event of its acceptance. */
export function createMessage(input: NewMessage): CreatedMessage {
  const message = writeMessage(input);
  const json = toStoredJson(message);
  assertMessageBytes(input, json);
  const { tenant, id, sender, recipient, kind, threadId } = input;
  const taskId = input.taskId ?? null;
  const record = {
    tenant,
    id,
    sender,
    recipient,
    kind,
    threadId,
    taskId,
    acceptedAtMs: input.acceptedAtMs,
    json,
  };
  const accepted: EventDraft = {
    type: "message.accepted",
    atMs: input.acceptedAtMs,
    actor: sender,
    agentId: recipient,
    messageId: id,
    taskId,
    threadId,
    data: {
      kind,
      from: sender,
      digest: digestOfText(json),
      ...(input.heldFor === undefined ? {} : { held_for: input.heldFor }),
    },
  };
  return {
    message,
    changes: { messages: [record], deliveries: [newDelivery(input)], events: [accepted] },
  };
}

/** Counts what its sender wrote: not the relay's own members, nor a body that the relay derived from the parts. */
function assertMessageBytes({ body, more }: NewMessage, json: string): void {
  const bytes = Buffer.byteLength(json);
  if (bytes <= LIMITS.bodyBytesMax) return;
  const isDerived = more["body"] === undefined && more["parts"] !== undefined;
  const own = LIMITS.messageBytesAdded + (isDerived ? bytesAsJson(body) : 0);
  if (bytes - own <= LIMITS.bodyBytesMax) return;
  throw new RelayError("too_large", `message: at most ${LIMITS.bodyBytesMax} bytes as JSON`, {
    details: { limit: LIMITS.bodyBytesMax },
  });
}

function writeMessage(input: NewMessage): Message {
  const { more } = input;
  const given = Object.entries(more).filter(([member]) => !NOT_COPIED.has(member));
  return {
    version: MESSAGE_VERSION,
    id: input.id,
    from: input.sender,
    to: input.recipient,
    type: input.kind,
    subject: input.subject,
    body: input.body,
    created_at: (more["created_at"] as string | undefined) ?? formatInstant(input.acceptedAtMs),
    urgency: "normal",
    needs_reply: false,
    ...(input.replyTo === undefined ? {} : { reply_to: input.replyTo }),
    thread_id: input.threadId,
    ...(input.taskId === undefined ? {} : { task_id: input.taskId }),
    status: "new",
    ...Object.fromEntries(given),
  };
}

/** Members that the relay writes itself, and one that would change the prototype of an object. */
const NOT_COPIED = new Set([
  "__proto__",
  "version",
  "id",
  "from",
  "to",
  "type",
  "subject",
  "body",
  "created_at",
  "reply_to",
  "thread_id",
  "task_id",
]);

function newDelivery(input: NewMessage): DeliveryRecord {
  const { heldFor } = input;
  return {
    tenant: input.tenant,
    messageId: input.id,
    agentId: input.recipient,
    sender: input.sender,
    taskId: input.taskId ?? null,
    purpose: input.purpose,
    state: heldFor === undefined ? "available" : "held",
    position: 0,
    deliveredAtMs: null,
    attempt: 0,
    leaseId: null,
    worker: null,
    leasedAtMs: null,
    leaseExpiresAtMs: null,
    reservedFor: input.reservedFor ?? null,
    expiresAtMs: input.expiresAtMs,
    settledAtMs: null,
    reason: heldFor === undefined ? null : `waits for the result of task ${heldFor}, which asks for the same`,
    duplicateSafety: input.duplicateSafety,
    idempotencyKey: input.idempotencyKey ?? null,
    quiet: input.quiet,
    threadId: input.threadId,
    version: 0,
  };
}
