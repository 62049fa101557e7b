import type {
  A2aMessage,
  A2aStreamResponse,
  A2aTask,
  AgentId,
  AgentInterface,
  JsonObject,
  MailboxItem,
  MailboxNotice,
  OfferedInterface,
  RelayError,
} from "@a2a-relay/protocol";
import type { PushAttempt } from "./pushes.ts";
import type { TaskPushConfig } from "./task-pushes.ts";

/**
 * Calls servers outside of the relay. It refuses addresses that the operator did not allow, follows no redirect, and
 * reads a bounded part of an answer in a bounded time.
 */
export interface Outbound {
  /** Undefined when it was stopped before the request had an outcome. */
  pushWebhook(webhook: Webhook, signal: AbortSignal): Promise<PushReport | undefined>;
  /** Undefined when it was stopped before the request had an outcome. */
  pushTaskUpdate(push: TaskUpdatePush, signal: AbortSignal): Promise<PushOutcome | undefined>;
  /** `url` is that of the agent's card, of the folder it is in, or of an interface. Throws `RemoteFailure`. */
  findAgent(url: string, signal: AbortSignal): Promise<FoundAgent>;
  /** `params` are those of `send` in A2A 1.0. Throws `RemoteFailure`. */
  sendMessage(agent: FoundAgent, params: JsonObject, options: RemoteSendOptions): Promise<SentMessage>;
  /** Throws `RemoteFailure`. */
  getTask(at: AgentInterface, task: RemoteTaskQuery, signal: AbortSignal): Promise<A2aTask>;
  /** Throws `RemoteFailure`. */
  cancelTask(at: AgentInterface, task: Pick<RemoteTaskQuery, "id">, signal: AbortSignal): Promise<void>;
}

/** A message, or a notice of it, for the webhook of an agent. */
export interface Webhook {
  readonly url: string;
  readonly tenant: string;
  readonly agentId: AgentId;
  /** By it receivers recognize a repeated push. */
  readonly messageId: string;
  /** Every attempt sends the same content with the same time. */
  readonly acceptedAtMs: number;
  readonly content: { readonly item: MailboxItem } | { readonly notice: MailboxNotice };
  /** Each of them signs; the receiver verifies one signature. */
  readonly secrets: readonly string[];
}

/** What is recorded of an attempt: the answer, or why there was none. It may name the host, but never the URL. */
export type AttemptRecord = Pick<PushAttempt, "status" | "error" | "answer">;

export interface PushReport extends AttemptRecord {
  readonly outcome: PushOutcome;
}

/** Every reader may see `reason`. `retryAfterMs`: the receiver asks not to be called for so long; 0 if it does not. */
export type PushOutcome =
  | { readonly kind: "delivered" }
  /** The endpoint does not work, so the failure counts for all of its messages. */
  | { readonly kind: "failed"; readonly reason: string; readonly retryAfterMs: number }
  /** The endpoint works and does not accept this message. */
  | {
      readonly kind: "refused";
      readonly reason: string;
      readonly retryAfterMs: number;
      /** A retry would be refused too. */
      readonly isFinal?: boolean;
    }
  /** It may have arrived, and must not be sent twice. */
  | { readonly kind: "unknown"; readonly reason: string }
  /** The endpoint accepts no more messages. */
  | { readonly kind: "gone"; readonly reason: string };

export type FailedOutcome = Exclude<PushOutcome, { readonly kind: "delivered" }>;

/** An update of a task, in A2A 1.0: the event, or the whole task for receivers of older dialects. */
export interface TaskUpdatePush extends Pick<
  TaskPushConfig,
  "url" | "dialect" | "token" | "scheme" | "credentials"
> {
  readonly content: { readonly event: A2aStreamResponse } | { readonly task: A2aTask };
}

/** A remote agent, and the interface at which to call it. */
export interface FoundAgent {
  /** The address at which it was searched. */
  readonly url: string;
  readonly at: OfferedInterface;
}

export interface RemoteSendOptions {
  /** The same for every attempt. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export interface SentMessage {
  readonly reply: { readonly task: A2aTask } | { readonly message: A2aMessage };
  /** The interface that answered. */
  readonly at: AgentInterface;
  readonly recorded: AttemptRecord;
}

export interface RemoteTaskQuery {
  /** As the remote agent names it. */
  readonly id: string;
  readonly historyLength: number;
}

/**
 * `stopped`: the relay ended the request. `failed`: a retry may succeed. `unknown`: it may have arrived. `refused`: a
 * retry would be refused too.
 */
export type RemoteFailureKind = "stopped" | "failed" | "unknown" | "refused";

/** A remote agent gave no usable answer. Every reader may see `reason`. */
export class RemoteFailure extends Error {
  override readonly name: string = "RemoteFailure";
  readonly kind: RemoteFailureKind;
  readonly reason: string;
  readonly recorded: AttemptRecord;
  readonly retryAfterMs: number;
  /** The error that the agent named. */
  readonly error: RelayError | undefined;
  /** The agent does not know the task. */
  readonly isNotFound: boolean;

  constructor(kind: RemoteFailureKind, reason: string, more: RemoteFailureOptions = {}) {
    super(reason, { cause: more.cause });
    this.kind = kind;
    this.reason = reason;
    this.recorded = more.recorded ?? { status: null, error: reason, answer: null };
    this.retryAfterMs = more.retryAfterMs ?? 0;
    this.error = more.error;
    this.isNotFound = more.isNotFound ?? false;
  }
}

export interface RemoteFailureOptions extends ErrorOptions {
  readonly recorded?: AttemptRecord;
  readonly retryAfterMs?: number;
  readonly error?: RelayError | undefined;
  readonly isNotFound?: boolean;
}
