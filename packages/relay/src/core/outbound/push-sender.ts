import type { Changes } from "../ports/relay-store.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { RemoteReply } from "./remote-reply.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { PushAttempt, PushEndpoint, PushRecord } from "../ports/pushes.ts";

/** One way of calling an agent. There is one for each mode of pushing. */
export interface PushSender {
  /** Undefined when it was stopped before anything came of it: then it counts as not tried. */
  attempt(endpoint: PushEndpoint, mail: MailboxMessage, how: AttemptOptions): Promise<Tried | undefined>;
  /** What is written together with the attempt, beyond what became of the push and of its mail. */
  changesAfter?(recorded: RecordedAttempt): Promise<Partial<Changes>>;
}

export interface AttemptOptions {
  readonly nowMs: number;
  /**
   * Puts on record that from here on the message may arrive, for a request that must not be made twice. False when the
   * message is not to be sent any more.
   */
  readonly announce: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** What came of an attempt. */
export interface Tried extends Pick<PushAttempt, "status" | "error" | "answer"> {
  readonly outcome: PushOutcome;
  /** What an agent elsewhere answered, and where. */
  readonly remote?: RemoteReply;
}

/** An attempt as it is about to be written. */
export interface RecordedAttempt {
  readonly tried: Tried;
  /** As it will be. */
  readonly push: PushRecord;
  /** As it was. */
  readonly delivery: DeliveryRecord | undefined;
  readonly nowMs: number;
}
