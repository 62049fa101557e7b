import {
  type AgentId,
  type Artifact,
  GUEST,
  LIMITS,
  type Message,
  POSTMASTER,
  type Receipt,
  RelayError,
} from "@a2a-relay/protocol";
import { combine, type Decision } from "../mechanisms/commit-retry.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { DeliveryPurpose, DeliveryRecord } from "../ports/deliveries.ts";
import { deliveryEvent, withdrawWork } from "../rules/task-changes.ts";
import type { CachedResult, TaskRecord } from "../ports/tasks.ts";
import { createMessage, type CreatedMessage, type NewMessage } from "../rules/new-message.ts";
import type { MessageDraft } from "./message-draft.ts";
import { ownThreadId } from "../rules/own-thread.ts";
import type { MessageRecord, SendKey } from "../ports/messages.ts";
import type { MessageDefaults } from "../rules/notices.ts";
import { effectOf } from "./task-effect.ts";

/** What the store holds about a message: what it refers to, and the same work of before. */
export interface SendRecords {
  /** What `reply_to` names, where the sender is a party to it. */
  readonly original: MessageRecord | undefined;
  /** Loaded only for the decision about a proposal. */
  readonly originalDelivery: DeliveryRecord | undefined;
  /** The task that the message belongs to, with its open deliveries. */
  readonly task: TaskRecord | undefined;
  readonly taskDeliveries: readonly DeliveryRecord[];
  /** Of the message that asked for the task, settled or not. */
  readonly askingDelivery: DeliveryRecord | undefined;
  readonly artifacts: readonly Artifact[];
  readonly parent: TaskRecord | undefined;
  /** The key of a cached result; undefined for work that is not idempotent. */
  readonly resultKey: string | undefined;
  /** The result of the same work. */
  readonly cached: CachedResult | undefined;
  /** The unfinished task that does the same work. */
  readonly running: TaskRecord | undefined;
}

/** All that the decision about a message depends on. */
export interface SendInput extends SendRecords {
  readonly tenant: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly draft: MessageDraft;
  readonly messageId: string;
  /** The id that the sender gives the task it asks for. */
  readonly clientTaskId: string | undefined;
  /** The agent that an A2A caller asks. */
  readonly askedOf: AgentId | undefined;
  readonly mailboxOpenMax: number;
  readonly sendKey: { readonly key: string; readonly digest: string } | undefined;
  readonly defaults: MessageDefaults;
}

export interface SendResult {
  /** False when the same message had been accepted before. */
  readonly created: boolean;
  readonly message: Message;
  readonly receipt: Receipt;
}

/** What a message does beside being delivered: the task it makes, moves or finishes, and what it settles. */
export interface Effect {
  readonly taskId: string | undefined;
  readonly purpose: DeliveryPurpose;
  readonly quiet: boolean;
  readonly reservedFor: string | undefined;
  /** The task whose result the delivery is held for. */
  readonly heldFor?: string;
  /** Why the delivery is withdrawn at once. */
  readonly withdrawn?: string;
  readonly changes: Partial<Changes>;
}

/**
 * Pure. Accepts the message with the changes to write, or throws why it is refused. `others` are written with them:
 * the capability check, and the registration of a remote recipient.
 */
export function decideSend(input: SendInput, others: readonly Partial<Changes>[] = []): Decision<SendResult> {
  const { tenant, recipient, mailboxOpenMax: openMax } = input;
  if (recipient === GUEST) assertAnswersGuest(input);
  const threadId = threadOf(input);
  const effect = effectOf(input, threadId);
  const { message, changes } = deliver(createMessage(messageOf(input, threadId, effect)), effect, input);
  const receipt: Receipt = {
    message_id: message.id,
    stage: "accepted",
    recipient,
    thread_id: threadId,
    ...(effect.taskId === undefined ? {} : { task_id: effect.taskId }),
  };
  const guarded: Partial<Changes> = {
    sendKeys: sendKeysOf(input, threadId, effect),
    room: recipient === GUEST ? [] : [{ agentId: recipient, openMax }],
  };
  return {
    changes: combine(tenant, [...others, changes, effect.changes, guarded]),
    answer: { created: true, message, receipt },
  };
}

/** A guest has no mailbox: it reads answers on its tasks, and nothing else can be sent to it. */
function assertAnswersGuest({ task, sender }: SendInput): void {
  if (task?.requester === GUEST && task.assignee === sender) return;
  throw new RelayError(
    "unknown_agent",
    `to: ${GUEST} stands for A2A callers without a mailbox; only an answer to a task of theirs reaches them`,
  );
}

function sendKeysOf(input: SendInput, threadId: string, { taskId }: Effect): readonly SendKey[] {
  const { tenant, sender, recipient, messageId, sendKey } = input;
  if (sendKey === undefined) return [];
  return [{ tenant, sender, recipient, ...sendKey, messageId, threadId, taskId: taskId ?? null }];
}

/** The delivery of a withdrawn message, and of one to a guest, is settled in the same commit. */
function deliver(
  created: CreatedMessage,
  { withdrawn }: Effect,
  { recipient, defaults: { nowMs } }: SendInput,
): CreatedMessage {
  const { messages, deliveries, events } = created.changes;
  if (recipient === GUEST) {
    const seen = deliveries.map(
      (each) => ({ ...each, state: "acknowledged", deliveredAtMs: nowMs, settledAtMs: nowMs }) as const,
    );
    const seenEvents = seen.map((each) => deliveryEvent("message.acknowledged", each, GUEST, nowMs, {}));
    return { ...created, changes: { messages, deliveries: seen, events: [...events, ...seenEvents] } };
  }
  if (withdrawn === undefined) return created;
  const settled = withdrawWork(deliveries, POSTMASTER, nowMs, withdrawn);
  return {
    ...created,
    changes: {
      messages,
      deliveries: settled.deliveries ?? [],
      events: [...events, ...(settled.events ?? [])],
    },
  };
}

function threadOf(input: SendInput): string {
  const { draft, task, original, defaults, messageId } = input;
  const given = draft.threadId ?? task?.threadId ?? original?.threadId;
  if (given !== undefined) return given;
  // An id that the sender chose may repeat one of a deleted message, whose thread this is not.
  return (draft.id === undefined ? ownThreadId(messageId) : undefined) ?? defaults.ids.thread();
}

function messageOf(input: SendInput, threadId: string, effect: Effect): NewMessage {
  const { draft, defaults } = input;
  return {
    tenant: input.tenant,
    id: input.messageId,
    sender: input.sender,
    recipient: input.recipient,
    kind: draft.kind,
    subject: draft.subject,
    body: draft.body,
    threadId,
    taskId: effect.taskId,
    purpose: effect.purpose,
    replyTo: draft.replyTo,
    acceptedAtMs: defaults.nowMs,
    expiresAtMs: expiryOf(draft, defaults),
    // Reading a result twice does no harm: its lease may run out and be given again.
    duplicateSafety: effect.purpose === "result" ? "idempotent" : draft.duplicateSafety,
    idempotencyKey: draft.idempotencyKey,
    quiet: effect.quiet,
    reservedFor: effect.reservedFor,
    heldFor: effect.heldFor,
    more: draft.given,
  };
}

function expiryOf(draft: MessageDraft, { nowMs, messageTtlMs }: MessageDefaults): number {
  if (draft.expiresAtMs === undefined) return nowMs + messageTtlMs;
  const given = draft.given.expires_at ?? "";
  if (draft.expiresAtMs <= nowMs) {
    throw new RelayError("invalid_argument", `expires_at: ${given} has already passed`);
  }
  if (draft.expiresAtMs > nowMs + LIMITS.messageTtlMsMax) {
    const days = LIMITS.messageTtlMsMax / (24 * 60 * 60 * 1_000);
    throw new RelayError("invalid_argument", `expires_at: ${given} is more than ${days} days away`);
  }
  return draft.expiresAtMs;
}
