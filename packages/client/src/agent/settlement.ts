import { LIMITS, type MessageInput, RelayError, type RelayErrorCode, type TaskCompleteRequest, type TaskFailRequest } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface SettlementParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly finished: FinishedMail;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly signal: AbortSignal;
}

const ANSWERS: ReadonlySet<Outcome["act"]> = new Set(["complete", "reject", "ask", "hand_over"]);

/** What is wrong with the answer itself: too long, empty, or for somebody whom nobody knows. */
const BAD_ANSWER_CODES: ReadonlySet<RelayErrorCode> = new Set([
  "ambiguous_agent",
  "invalid_argument",
  "mailbox_full",
  "permission_denied",
  "too_large",
  "unknown_agent",
]);

/** Tells the relay what became of a message, for as long as it takes the relay to hear it. */
export class Settlement {
  readonly #parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.#parts = parts;
  }

  /** Never rejects: what the relay refuses is reported, and nothing is left to do about it. */
  async settle(mail: LeasedMessage, outcome: Outcome): Promise<void> {
    const { finished, errors, signal, delays } = this.#parts;
    const { message_id: messageId } = mail.item;
    // Released mail is to be worked on again, by whoever gets it.
    if (outcome.act !== "release") finished.remember(messageId, outcome);
    const onAway = (error: RelayError): void => errors.report(error, "settle");
    try {
      await untilReached(() => this.#tell(mail, outcome), { signal, delays, onAway });
      if (outcome.act === "ask") await this.settle(mail, { act: "acknowledge" });
      else finished.forget(messageId);
      errors.recovered("settle");
    } catch (reason) {
      if (signal.aborted) return;
      await this.#refused(mail, outcome, reason);
    }
  }

  async #refused(mail: LeasedMessage, outcome: Outcome, reason: unknown): Promise<void> {
    const { finished, errors } = this.#parts;
    const code = reason instanceof RelayError ? reason.code : "internal";
    if (code === "task_canceled") {
      finished.forget(mail.item.message_id);
      return;
    }
    errors.report(reason, "settle");
    // The requester should hear that there was an answer, and why it does not get it.
    if (ANSWERS.has(outcome.act) && BAD_ANSWER_CODES.has(code)) {
      const why = reasonText(`the answer was refused by the relay: ${reasonText(reason)}`);
      await this.settle(mail, { act: "fail", request: { reason: why } });
      return;
    }
    // Another worker may give the mail back, and the relay may get over its fault; until then it is kept.
    if (code !== "lease_lost" && code !== "internal") finished.forget(mail.item.message_id);
  }

  /** Each act may happen twice without harm, since the reply to the first may get lost. */
  async #tell(mail: LeasedMessage, outcome: Outcome): Promise<void> {
    const { client, agentId, signal } = this.#parts;
    const { task_id: taskId = "" } = mail.item;
    const { message_id, lease_id } = mail.ref;
    switch (outcome.act) {
      case "acknowledge":
        return this.#acknowledge(mail);
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
        await client.release(agentId, { leases: [mail.ref] }, { signal });
        return;
    }
  }

  async #acknowledge(mail: LeasedMessage): Promise<void> {
    const { client, agentId, signal } = this.#parts;
    const { results } = await client.ack(agentId, { leases: [mail.ref] }, { signal });
    for (const result of results) {
      if (result.ok) continue;
      const { code, message, details } = result.error;
      throw new RelayError(code, message, { details });
    }
  }
}

/** What is to become of a message after its handler: decided once, carried out until the relay has heard it. */
export type Outcome =
  | { readonly act: "acknowledge" }
  | { readonly act: "complete"; readonly request: TaskCompleteRequest }
  | { readonly act: "fail" | "reject"; readonly request: TaskFailRequest }
  /** A question to the requester ends the turn, not the task: the message goes out, the mail is done. */
  | { readonly act: "ask"; readonly message: MessageInput }
  | { readonly act: "hand_over"; readonly message: MessageInput }
  /** MailboxMessage that is no task and could not be handled: it is dead, and its sender is told. */
  | { readonly act: "fail_message"; readonly reason: string }
  | { readonly act: "release" };

/** A reason for the other side, from whatever was thrown: never empty, never longer than the relay takes. */
export function reasonText(reason: unknown): string {
  const text = (reason instanceof Error ? reason.message : String(reason)).trim();
  if (text === "") return reason instanceof Error ? reason.name : "no reason was given";
  return text.slice(0, LIMITS.reasonCharsMax).toWellFormed();
}

/** Enough for hours of lost acknowledgements, small enough to be forgotten about. */
const FINISHED_MAX = 10_000;

/**
 * Messages whose handler has finished but whose outcome the relay has not confirmed. Should one of them be
 * delivered again, its outcome is told again instead of doing the work twice.
 */
export class FinishedMail {
  readonly #outcomes = new Map<string, Outcome>();

  outcome(messageId: string): Outcome | undefined {
    return this.#outcomes.get(messageId);
  }

  remember(messageId: string, outcome: Outcome): void {
    this.#outcomes.set(messageId, outcome);
    if (this.#outcomes.size <= FINISHED_MAX) return;
    const [oldest] = this.#outcomes.keys();
    if (oldest !== undefined) this.#outcomes.delete(oldest);
  }

  forget(messageId: string): void {
    this.#outcomes.delete(messageId);
  }
}
