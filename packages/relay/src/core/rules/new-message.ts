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

/** Everything a input needs to be kept and put into a mailbox. */
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

/** Puts a input into its mailbox: the message, its delivery and the event that says so. */
export function post(input: NewMessage): CreatedMessage {
  const message = writeMessage(input);
  const json = JSON.stringify(message);
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
    json,
    changes: { messages: [record], deliveries: [newDelivery(input)], events: [accepted] },
  };
}

/** What its sender wrote counts. The relay's own members do not, nor does a body that it drew from the parts. */
function assertMessageBytes({ body, more }: NewMessage, json: string): void {
  // Three bytes are the most for what counts as one here: nearly every input need not be measured.
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

function writeMessage(input: NewMessage): Message {
  const { more } = input;
  const message: UnfinishedMessage = {
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
  };
  // One after the other, because what follows a spread is put into an object slowly, and every input comes by here.
  if (input.replyTo !== undefined) message.reply_to = input.replyTo;
  message.thread_id = input.threadId;
  if (input.taskId !== undefined) message.task_id = input.taskId;
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
