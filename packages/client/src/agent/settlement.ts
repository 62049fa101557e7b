import {
  LIMITS,
  type MessageInput,
  RelayError,
  type RelayErrorCode,
  type TaskCompleteRequest,
  type TaskFailRequest,
} from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface SettlementParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly unconfirmed: UnconfirmedOutcomes;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly signal: AbortSignal;
}

const ANSWERS: ReadonlySet<Outcome["act"]> = new Set(["complete", "reject", "ask", "hand_over"]);

/** The relay refused the answer itself: too long, empty, or to an unknown agent. */
const BAD_ANSWER_CODES: ReadonlySet<RelayErrorCode> = new Set([
  "ambiguous_agent",
  "invalid_argument",
  "mailbox_full",
  "permission_denied",
  "too_large",
  "unknown_agent",
]);

/** Reports the outcome of a message, and retries while the relay is unreachable. */
export class Settlement {
  readonly #parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.#parts = parts;
  }

  /** Never rejects: refusals are reported to `errors`. */
  async settle(leased: LeasedMessage, outcome: Outcome): Promise<void> {
    const { unconfirmed, errors, signal, delays } = this.#parts;
    const { message_id: messageId } = leased.item;
    // A released message will be handled again.
    if (outcome.act !== "release") unconfirmed.remember(messageId, outcome);
    const onAway = (error: RelayError): void => errors.report(error, "settle");
    try {
      await untilReached(() => this.#report(leased, outcome), { signal, delays, onAway });
      if (outcome.act === "ask") await this.settle(leased, { act: "acknowledge" });
      else unconfirmed.forget(messageId);
      errors.recovered("settle");
    } catch (reason) {
      if (signal.aborted) return;
      await this.#refused(leased, outcome, reason);
    }
  }

  async #refused(leased: LeasedMessage, outcome: Outcome, reason: unknown): Promise<void> {
    const { unconfirmed, errors } = this.#parts;
    const code = reason instanceof RelayError ? reason.code : "internal";
    if (code === "task_canceled") {
      unconfirmed.forget(leased.item.message_id);
      return;
    }
    errors.report(reason, "settle");
    // The requester should learn why it does not get the answer.
    if (ANSWERS.has(outcome.act) && BAD_ANSWER_CODES.has(code)) {
      const why = reasonText(`the answer was refused by the relay: ${reasonText(reason)}`);
      await this.settle(leased, { act: "fail", request: { reason: why } });
      return;
    }
    // Another worker may release the message, and the relay may recover; until then the outcome is kept.
    if (code !== "lease_lost" && code !== "internal") unconfirmed.forget(leased.item.message_id);
  }

  /** Each of these may safely happen twice: the first reply may get lost. */
  async #report(leased: LeasedMessage, outcome: Outcome): Promise<void> {
    const { client, agentId, signal } = this.#parts;
    const { task_id: taskId = "" } = leased.item;
    const { message_id, lease_id } = leased.ref;
    switch (outcome.act) {
      case "acknowledge":
        return this.#acknowledge(leased);
      case "complete":
        await client.completeTask(taskId, { ...outcome.request, lease_id }, { signal });
        return;
      case "fail":
        await client.failTask(taskId, { ...outcome.request, lease_id }, { signal });
        return;
      case "reject":
        await client.rejectTask(taskId, { ...outcome.request, lease_id }, { signal });
        return;
      case "ask":
      case "hand_over":
        await client.send({ ...outcome.message, lease_id }, { signal });
        return;
      case "fail_message":
        await client.failMessage(agentId, { message_id, lease_id, reason: outcome.reason }, { signal });
        return;
      case "release":
        await client.release(agentId, { leases: [leased.ref] }, { signal });
        return;
    }
  }

  async #acknowledge(leased: LeasedMessage): Promise<void> {
    const { client, agentId, signal } = this.#parts;
    const { results } = await client.ack(agentId, { leases: [leased.ref] }, { signal });
    for (const result of results) {
      if (result.ok) continue;
      const { code, message, details } = result.error;
      throw new RelayError(code, message, { details });
    }
  }
}

/** What to do with a message after its handler: decided once, retried until the relay has confirmed it. */
export type Outcome =
  | { readonly act: "acknowledge" }
  | { readonly act: "complete"; readonly request: TaskCompleteRequest }
  | { readonly act: "fail" | "reject"; readonly request: TaskFailRequest }
  /** A question to the requester ends the turn, not the task. */
  | { readonly act: "ask"; readonly message: MessageInput }
  | { readonly act: "hand_over"; readonly message: MessageInput }
  /** The handler of a plain message failed: the message is dead, and its sender is told. */
  | { readonly act: "fail_message"; readonly reason: string }
  | { readonly act: "release" };

/** The text of a thrown value: never empty, never longer than the relay accepts. */
export function reasonText(reason: unknown): string {
  const text = (reason instanceof Error ? reason.message : String(reason)).trim();
  if (text === "") return reason instanceof Error ? reason.name : "no reason was given";
  return text.slice(0, LIMITS.reasonCharsMax).toWellFormed();
}

const UNCONFIRMED_MAX = 10_000;

/**
 * Outcomes that the relay has not confirmed. When such a message is delivered again, the worker reports the outcome
 * again instead of doing the work twice.
 */
export class UnconfirmedOutcomes {
  readonly #outcomes = new Map<string, Outcome>();

  outcome(messageId: string): Outcome | undefined {
    return this.#outcomes.get(messageId);
  }

  remember(messageId: string, outcome: Outcome): void {
    this.#outcomes.set(messageId, outcome);
    if (this.#outcomes.size <= UNCONFIRMED_MAX) return;
    const [oldest] = this.#outcomes.keys();
    if (oldest !== undefined) this.#outcomes.delete(oldest);
  }

  forget(messageId: string): void {
    this.#outcomes.delete(messageId);
  }
}
