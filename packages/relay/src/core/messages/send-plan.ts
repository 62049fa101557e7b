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
import { combine } from "../mechanisms/commit-retry.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { DeliveryPurpose, DeliveryRecord } from "../ports/deliveries.ts";
import { deliveryEvent, withdrawWork } from "../rules/task-changes.ts";
import type { CachedResult, TaskRecord } from "../ports/tasks.ts";
import { type CreatedMessage, type NewMessage, post } from "../rules/new-message.ts";
import type { MessageDraft } from "./message-draft.ts";
import { ownThreadId } from "../rules/own-thread.ts";
import type { MessageRecord, SendKey } from "../ports/messages.ts";
import type { MessageDefaults } from "../rules/notices.ts";
import { effectOf } from "./task-effect.ts";

/** All that is known when it is decided what a message does. */
export interface SendContext {
  readonly tenant: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly draft: MessageDraft;
  /** The id under which the message will be kept. */
  readonly messageId: string;
  /** What `reply_to` names. */
  readonly original: MessageRecord | undefined;
  readonly originalDelivery: DeliveryRecord | undefined;
  /** The task the message belongs to, and that task's open mail. */
  readonly task: TaskRecord | undefined;
  readonly taskDeliveries: readonly DeliveryRecord[];
  /** The mail that asked for the task, settled or not. */
  readonly taskAsked: DeliveryRecord | undefined;
  readonly artifacts: readonly Artifact[];
  readonly parent: TaskRecord | undefined;
  /** The id that the sender gives the task it asks for. */
  readonly clientTaskId: string | undefined;
  /** The agent it is asked of, where the caller asks over A2A. */
  readonly askedOf: AgentId | undefined;
  /** Under which the result will be remembered; undefined for work that is not idempotent. */
  readonly resultKey: string | undefined;
  /** What answered the same work before, and else the task that is about to. */
  readonly cached: CachedResult | undefined;
  readonly running: TaskRecord | undefined;
  /** How much open mail the recipient may have. */
  readonly mailboxOpenMax: number;
  readonly sendKey: { readonly key: string; readonly digest: string } | undefined;
  readonly defaults: MessageDefaults;
}

export interface SendPlan {
  readonly message: Message;
  readonly receipt: Receipt;
  readonly changes: Changes;
}

/** What a message does beyond lying in a mailbox: the task it makes, moves or finishes, and what it settles. */
export interface Effect {
  readonly taskId: string | undefined;
  readonly purpose: DeliveryPurpose;
  readonly quiet: boolean;
  readonly reservedFor: string | undefined;
  /** The task whose result it waits for before anybody may take it. */
  readonly heldFor?: string;
  /** Why nobody will be given it. */
  readonly withdrawn?: string;
  readonly changes: Partial<Changes>;
}

/** Pure: the same context gives the same plan. */
export function planSend(context: SendContext): SendPlan {
  const { tenant, recipient, sender, sendKey, mailboxOpenMax: openMax } = context;
  const threadId = threadOf(context);
  const effect = effectOf(context, threadId);
  const { message, changes } = place(post(messageOf(context, threadId, effect)), effect, context);
  const receipt: Receipt = {
    message_id: message.id,
    stage: "accepted",
    recipient,
    thread_id: threadId,
    ...(effect.taskId === undefined ? {} : { task_id: effect.taskId }),
  };
  const keys: SendKey[] =
    sendKey === undefined
      ? []
      : [
          {
            tenant,
            sender,
            recipient,
            ...sendKey,
            messageId: message.id,
            threadId,
            taskId: effect.taskId ?? null,
          },
        ];
  return {
    message,
    receipt,
    changes: combine(tenant, [
      changes,
      effect.changes,
      { sendKeys: keys, room: recipient === GUEST ? [] : [{ agentId: recipient, openMax }] },
    ]),
  };
}

/** Puts the message where its effect wants it: into the mailbox, unless nobody has to act on it any more. */
function place(
  posted: CreatedMessage,
  { withdrawn }: Effect,
  { recipient, defaults }: SendContext,
): CreatedMessage {
  if (recipient === GUEST) return handedOver(posted, defaults.nowMs);
  if (withdrawn === undefined) return posted;
  const { messages, deliveries, events } = posted.changes;
  const settled = withdrawWork(deliveries, POSTMASTER, defaults.nowMs, withdrawn);
  return {
    ...posted,
    changes: {
      messages,
      deliveries: settled.deliveries ?? [],
      events: [...events, ...(settled.events ?? [])],
    },
  };
}

/** A guest sees it on its task, so that there is nothing to wait for. */
function handedOver({ changes, ...posted }: CreatedMessage, nowMs: number): CreatedMessage {
  const settled = changes.deliveries.map((delivery) => {
    return { ...delivery, state: "acknowledged", deliveredAtMs: nowMs, settledAtMs: nowMs } as const;
  });
  const events = settled.map((each) => deliveryEvent("message.acknowledged", each, GUEST, nowMs, {}));
  return { ...posted, changes: { ...changes, deliveries: settled, events: [...changes.events, ...events] } };
}

function threadOf(context: SendContext): string {
  const { draft, task, original, defaults, messageId } = context;
  const ofOther = draft.threadId ?? task?.threadId ?? original?.threadId;
  if (ofOther !== undefined) return ofOther;
  // Whoever names a message may name it like one that is long gone, whose thread this is not.
  return (draft.id === undefined ? ownThreadId(messageId) : undefined) ?? defaults.ids.thread();
}

function messageOf(context: SendContext, threadId: string, effect: Effect): NewMessage {
  const { draft, defaults } = context;
  return {
    tenant: context.tenant,
    id: context.messageId,
    sender: context.sender,
    recipient: context.recipient,
    kind: draft.kind,
    subject: draft.subject,
    body: draft.body,
    threadId,
    taskId: effect.taskId,
    purpose: effect.purpose,
    replyTo: draft.replyTo,
    acceptedAtMs: defaults.nowMs,
    expiresAtMs: expiryOf(draft, defaults),
    // Reading a result twice does no harm, so that it may come back whenever its reader is lost.
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
