import type { DeliveryState, PushState, TaskState } from "@a2a-relay/protocol";

/**
 * What one client saw, in the order in which it saw it. `start` and `end` are positions in that order: an act
 * whose `end` is smaller than the `start` of another was over before the other began.
 */
interface Timed {
  readonly start: number;
  readonly end: number;
}

/** `unknown`: the connection broke first, so it may have happened or not. */
export type Outcome = "ok" | "refused" | "unknown";

interface Answered extends Timed {
  readonly outcome: Outcome;
  /** Why it was refused. */
  readonly code?: string | undefined;
}

/** What a client wanted to send. Its body is its own, so that it can be told from every other. */
export interface NewMessage {
  readonly sender: string;
  readonly recipient: string;
  readonly kind: "note" | "request";
  readonly body: string;
  readonly key?: string | undefined;
  /** An id that the sender chose, which serves as a key too. */
  readonly id?: string | undefined;
  readonly idempotent: boolean;
}

export interface SendEntry extends Answered {
  readonly act: "send";
  readonly message: NewMessage;
  /** Messages of one batch share its name. */
  readonly batch?: { readonly name: string; readonly atomic: boolean } | undefined;
  /** 201 when it was new, 200 when it was known. */
  readonly status?: number | undefined;
  readonly messageId?: string | undefined;
  readonly threadId?: string | undefined;
  readonly taskId?: string | undefined;
}

export interface SeenDelivery {
  readonly messageId: string;
  readonly sender: string;
  readonly body: string;
}

export interface ReadEntry extends Answered {
  readonly act: "read";
  readonly mailbox: string;
  readonly limit: number;
  /** The end of the read that gave the cursor; absent when it read from the beginning. */
  readonly cursorFrom?: number | undefined;
  readonly deliveries: readonly SeenDelivery[];
}

export interface Grant extends SeenDelivery {
  readonly leaseId: string;
  readonly attempt: number;
  readonly taskId?: string | undefined;
}

export interface LeaseEntry extends Answered {
  readonly act: "lease";
  readonly mailbox: string;
  readonly grants: readonly Grant[];
}

/** One act on the delivery of one message: the holder's, the reader's or the operator's. */
export const DELIVERY_ACTS = ["ack", "release", "renew", "fail", "requeue", "force_error"] as const;

export interface DeliveryActEntry extends Answered {
  readonly act: (typeof DELIVERY_ACTS)[number];
  readonly messageId: string;
  readonly leaseId?: string | undefined;
  readonly attempt?: number | undefined;
  /** The reason given, which may come back to the sender in a message. */
  readonly text?: string | undefined;
}

/** A try to complete a task, by its own route or by a reply. Its text is its own. */
export interface FinishEntry extends Answered {
  readonly act: "finish";
  readonly by: "complete" | "reply";
  readonly taskId: string;
  readonly messageId: string;
  readonly leaseId: string;
  readonly attempt: number;
  readonly text: string;
}

/** A message as the relay shows it. */
export interface FetchEntry extends Timed {
  readonly act: "fetch";
  readonly messageId: string;
  readonly found:
    | {
        readonly sender: string;
        readonly recipient: string;
        readonly body: string;
        readonly state: DeliveryState;
        readonly attempt: number;
        readonly replyTo?: string | undefined;
        readonly push?: PushState | undefined;
      }
    | undefined;
}

export interface TaskFetchEntry extends Timed {
  readonly act: "fetch_task";
  readonly taskId: string;
  readonly found:
    | {
        readonly state: TaskState;
        readonly text: string | undefined;
        readonly resultMessageId: string | undefined;
      }
    | undefined;
}

export interface VerifyEntry extends Timed {
  readonly act: "verify";
  readonly ok: boolean;
  readonly problem?: string | undefined;
  readonly lastSeq: number;
}

export interface JournalEvent {
  readonly seq: number;
  readonly type: string;
  readonly messageId?: string | undefined;
  readonly taskId?: string | undefined;
}

/** The whole journal, read at the end. */
export interface JournalEntry extends Timed {
  readonly act: "journal";
  readonly events: readonly JournalEvent[];
}

/** The receiver got the webhook of a message. */
export interface WebhookEntry extends Timed {
  readonly act: "webhook";
  readonly messageId: string;
}

export interface StartEntry extends Timed {
  readonly act: "start";
  readonly tookMs: number;
}

export interface KillEntry extends Timed {
  readonly act: "kill";
  readonly how: string;
}

/** Something the relay must never say, such as an internal error. */
export interface ComplaintEntry extends Timed {
  readonly act: "complaint";
  readonly text: string;
}

export type Entry =
  | SendEntry
  | ReadEntry
  | LeaseEntry
  | DeliveryActEntry
  | FinishEntry
  | FetchEntry
  | TaskFetchEntry
  | VerifyEntry
  | JournalEntry
  | WebhookEntry
  | StartEntry
  | KillEntry
  | ComplaintEntry;

type WithoutTime<Some extends Entry> = Some extends Entry ? Omit<Some, "start" | "end"> : never;

/** Append-only. */
export class History {
  readonly #entries: Entry[] = [];
  #position = 0;

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The position of an act that begins now. */
  begin(): number {
    this.#position += 1;
    return this.#position;
  }

  /** Returns the position of its end. */
  record(start: number, entry: WithoutTime<Entry>): number {
    this.#position += 1;
    this.#entries.push({ ...entry, start, end: this.#position });
    return this.#position;
  }
}

export function isAct<Act extends Entry["act"]>(
  entry: Entry,
  act: Act,
): entry is Extract<Entry, { readonly act: Act }> {
  return entry.act === act;
}

export function entriesOf<Act extends Entry["act"]>(
  entries: readonly Entry[],
  act: Act,
): readonly Extract<Entry, { readonly act: Act }>[] {
  return entries.filter((entry) => isAct(entry, act));
}

export function deliveryActs(entries: readonly Entry[]): readonly DeliveryActEntry[] {
  return entries.filter((entry): entry is DeliveryActEntry =>
    (DELIVERY_ACTS as readonly string[]).includes(entry.act),
  );
}
