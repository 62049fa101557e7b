import { type LeaseRef, LIMITS, type QueueEntry, RelayError } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { isAway, isUnknownAgent, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { InboxSource } from "./inbox-source.ts";
import type { LeasedItem, LeaseRenewal } from "./lease-renewal.ts";
import { type FilledAgentOptions, isNamed } from "./relay-agent-options.ts";

export interface MailIntakeParts {
  readonly client: RelayClient;
  readonly source: InboxSource;
  readonly options: FilledAgentOptions;
  readonly delays: RetryDelays;
  readonly random?: (() => number) | undefined;
  readonly renewal: LeaseRenewal;
  readonly errors: BackgroundErrors;
  /** Handles one message. Never rejects. */
  readonly work: (item: LeasedItem) => Promise<void>;
  /** Makes the relay know the agent again after it lost it. */
  readonly register: () => Promise<void>;
  /** Ends the intake: nothing new is begun afterwards. */
  readonly signal: AbortSignal;
}

/** Enough to outlast a hiccup; a queue that stays closed is not for this agent to look at. */
const LOOKS_MAX = 3;

interface Stranded {
  /** To be given back. */
  readonly leases: readonly LeaseRef[];
  /** After this time there may be more of them. */
  readonly againMs: number;
}

const NOTHING: Stranded = { leases: [], againMs: Infinity };

/** Leases mail whenever there is room for it, and comes back by itself when the relay was away. */
export class MailIntake {
  readonly #parts: MailIntakeParts;
  readonly #working = new Set<Promise<void>>();
  /** Leased, but the agent was told to stop before it could begin. */
  readonly #unbegun: LeaseRef[] = [];
  /** How often to look yet for mail that lies under a lease nobody here knows. */
  #looksLeft = 0;
  /** By then the relay has noticed that whoever asked for the last lost lease has gone, or has leased to it. */
  #lostUntilMs = 0;
  /** Until then it is not worth looking again. */
  #lookAgainMs = 0;
  #onRoom = (): void => {};

  constructor(parts: MailIntakeParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => this.#onRoom(), { once: true });
  }

  /** Runs until the signal is aborted. Never rejects. */
  async run(): Promise<void> {
    const { signal, delays, random, errors, options } = this.#parts;
    // As after a lost answer: what was leased under this name is not known here, and more may come for a while.
    if (options.resumes !== undefined) this.#lost(options.waitMs);
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#takeMail();
        if (failures > 0) errors.recovered("lease");
        failures = 0;
      } catch (reason) {
        if (signal.aborted) break;
        failures += 1;
        errors.report(reason, "lease");
        await pause(retryDelayMs(failures, delays, random), { signal }).catch(() => undefined);
      }
    }
  }

  /** Resolves when every handler has ended and the relay has heard of it. */
  async idle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  /**
   * Gives back what was leased to this worker but not begun. Otherwise such mail would lie there until an
   * operator finds it, unless its sender declared it idempotent.
   */
  async releaseUnbegun(options: CallOptions): Promise<void> {
    const { client } = this.#parts;
    const { id } = this.#parts.options;
    const leases = this.#unbegun.splice(0);
    const lookedAtMs = performance.now();
    const found = this.#looksLeft > 0 ? await this.#stranded(options) : NOTHING;
    leases.push(...found.leases);
    if (leases.length > 0) await client.release(id, { leases }, options);
    const isLost = lookedAtMs < this.#lostUntilMs;
    this.#looksLeft = isLost || found.againMs < Infinity ? LOOKS_MAX : 0;
    this.#lookAgainMs = Math.min(isLost ? this.#lostUntilMs : Infinity, lookedAtMs + found.againMs);
  }

  /** What the relay says this worker has, or had before it was started anew, and this worker never got to see. */
  async #stranded(options: CallOptions): Promise<Stranded> {
    const { client } = this.#parts;
    const { id } = this.#parts.options;
    try {
      const query = { agent: id, state: "leased", limit: LIMITS.listLimitMax } as const;
      const { entries } = await client.queue(query, options);
      const leases: LeaseRef[] = [];
      let againMs = Infinity;
      for (const entry of entries) {
        const leftMs = this.#leftMs(entry);
        if (leftMs > 0) againMs = Math.min(againMs, leftMs);
        else leases.push({ message_id: entry.message_id, lease_id: entry.lease?.id ?? "" });
      }
      return { leases, againMs };
    } catch (reason) {
      // An agent whose credential does not open the queue leaves this to an operator.
      if (reason instanceof RelayError && reason.code === "permission_denied") return NOTHING;
      throw reason;
    }
  }

  /**
   * How long the mail is still another's, by the relay's clock. Another process of the same name may be at work on it,
   * and keeps its lease from running out for as long as it is.
   */
  #leftMs({ lease, lease_age_ms: ageMs = 0 }: QueueEntry): number {
    const { renewal, options } = this.#parts;
    const { worker, resumes } = options;
    if (lease?.worker === undefined || renewal.holds(lease.id)) return Infinity;
    if (lease.worker === worker) return 0;
    if (resumes === undefined || !isNamed(lease.worker, resumes) || lease.expires_at === undefined) {
      return Infinity;
    }
    return Date.parse(lease.expires_at) - Date.parse(lease.leased_at) - ageMs;
  }

  async #takeMail(): Promise<void> {
    const { source, options, signal } = this.#parts;
    const { leaseMs, waitMs, worker } = options;
    const room = options.concurrency - this.#working.size;
    if (room === 0) {
      await this.#room();
      return;
    }
    if (this.#looksLeft > 0 && performance.now() >= this.#lookAgainMs) await this.#tidy();
    const request = { max: room, lease_ms: leaseMs, wait_ms: this.#patienceMs(), worker };
    try {
      const { messages } = await source.lease(request, { signal });
      for (const item of messages) this.#begin(item);
    } catch (reason) {
      // The relay may have leased mail to this worker, and only its answer got lost.
      if (signal.aborted || isAway(reason)) this.#lost(waitMs);
      if (isUnknownAgent(reason)) await this.#parts.register();
      throw reason;
    }
  }

  /** No longer than until it is time to look again. */
  #patienceMs(): number {
    const { waitMs } = this.#parts.options;
    if (this.#looksLeft === 0) return waitMs;
    return Math.max(0, Math.min(waitMs, Math.ceil(this.#lookAgainMs - performance.now())));
  }

  /** A connection may break without the relay hearing of it, which then waits for mail until the time is over. */
  #lost(waitMs: number): void {
    this.#looksLeft = LOOKS_MAX;
    this.#lookAgainMs = performance.now();
    this.#lostUntilMs = this.#lookAgainMs + waitMs;
  }

  /** Where the queue stays closed although mail can be leased, what lies there is left to an operator. */
  async #tidy(): Promise<void> {
    const { errors, signal } = this.#parts;
    try {
      await this.releaseUnbegun({ signal });
    } catch (reason) {
      signal.throwIfAborted();
      this.#looksLeft -= 1;
      errors.report(reason, "lease");
    }
  }

  #begin(item: LeasedItem): void {
    if (this.#parts.signal.aborted) {
      this.#unbegun.push({ message_id: item.message_id, lease_id: item.lease.id });
      return;
    }
    const done = this.#parts.work(item).finally(() => {
      this.#working.delete(done);
      this.#onRoom();
    });
    this.#working.add(done);
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom = resolve;
      if (this.#parts.signal.aborted) resolve();
    });
  }
}
