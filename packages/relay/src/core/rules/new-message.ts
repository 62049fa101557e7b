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
import type { EventDraft } from "./event.ts";
import type { DeliveryRecord, DeliveryPurpose } from "../ports/delivery-record.ts";
import { digestOfText } from "./digest.ts";

/** Everything a letter needs to be kept and put into a mailbox. */
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
  /** The task whose result it waits for before anybody may take it. */
  readonly heldFor?: string | undefined;
  /** The sender's other members, kept as they came. */
  readonly more: Readonly<Record<string, unknown>>;
}

export interface CreatedMessage {
  readonly message: Message;
  readonly json: string;
  readonly changes: Pick<Required<Changes>, "messages" | "deliveries" | "events">;
}

/** Puts a letter into its mailbox: the message, its delivery and the event that says so. */
export function post(letter: NewMessage): CreatedMessage {
  const message = writeMessage(letter);
  const json = JSON.stringify(message);
  assertMessageBytes(letter, json);
  const { tenant, id, sender, recipient, kind, threadId } = letter;
  const taskId = letter.taskId ?? null;
  const record = {
    tenant,
    id,
    sender,
    recipient,
    kind,
    threadId,
    taskId,
    acceptedAtMs: letter.acceptedAtMs,
    json,
  };
  const accepted: EventDraft = {
    type: "message.accepted",
    atMs: letter.acceptedAtMs,
    actor: sender,
    agentId: recipient,
    messageId: id,
    taskId,
    threadId,
    data: {
      kind,
      from: sender,
      digest: digestOfText(json),
      ...(letter.heldFor === undefined ? {} : { held_for: letter.heldFor }),
    },
  };
  return {
    message,
    json,
    changes: { messages: [record], deliveries: [newDelivery(letter)], events: [accepted] },
  };
}

/** What its sender wrote counts. The relay's own members do not, nor does a body that it drew from the parts. */
function assertMessageBytes({ body, more }: NewMessage, json: string): void {
  // Three bytes are the most for what counts as one here: nearly every letter need not be measured.
  if (json.length * 3 <= LIMITS.bodyBytesMax) return;
  const bytes = Buffer.byteLength(json);
  if (bytes <= LIMITS.bodyBytesMax) return;
  const isDrawn = more["body"] === undefined && more["parts"] !== undefined;
  const own = LIMITS.messageBytesAdded + (isDrawn ? Buffer.byteLength(JSON.stringify(body)) : 0);
  if (bytes - own <= LIMITS.bodyBytesMax) return;
  throw new RelayError("too_large", `message: at most ${LIMITS.bodyBytesMax} bytes as JSON`, {
    details: { limit: LIMITS.bodyBytesMax },
  });
}

type UnfinishedMessage = { -readonly [Member in keyof Message]?: Message[Member] };

function writeMessage(letter: NewMessage): Message {
  const { more } = letter;
  const message: UnfinishedMessage = {
    version: MESSAGE_VERSION,
    id: letter.id,
    from: letter.sender,
    to: letter.recipient,
    type: letter.kind,
    subject: letter.subject,
    body: letter.body,
    created_at: (more["created_at"] as string | undefined) ?? formatInstant(letter.acceptedAtMs),
    urgency: "normal",
    needs_reply: false,
  };
  // One after the other, because what follows a spread is put into an object slowly, and every letter comes by here.
  if (letter.replyTo !== undefined) message.reply_to = letter.replyTo;
  message.thread_id = letter.threadId;
  if (letter.taskId !== undefined) message.task_id = letter.taskId;
  message["status"] = "new";
  for (const member in more) if (!NOT_COPIED.has(member)) message[member] = more[member];
  return message as Message;
}

/** What of the sender's is not taken over: what the relay has written, and what would be no member. */
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

function newDelivery(letter: NewMessage): DeliveryRecord {
  const { heldFor } = letter;
  return {
    tenant: letter.tenant,
    messageId: letter.id,
    agentId: letter.recipient,
    sender: letter.sender,
    taskId: letter.taskId ?? null,
    purpose: letter.purpose,
    state: heldFor === undefined ? "available" : "held",
    position: 0,
    deliveredAtMs: null,
    attempt: 0,
    leaseId: null,
    worker: null,
    leasedAtMs: null,
    leaseExpiresAtMs: null,
    reservedFor: letter.reservedFor ?? null,
    expiresAtMs: letter.expiresAtMs,
    settledAtMs: null,
    reason: heldFor === undefined ? null : `waits for the result of task ${heldFor}, which asks for the same`,
    duplicateSafety: letter.duplicateSafety,
    idempotencyKey: letter.idempotencyKey ?? null,
    quiet: letter.quiet,
    threadId: letter.threadId,
    version: 0,
  };
}
