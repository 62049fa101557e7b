import { type LeaseRef, LIMITS, type QueueEntry, RelayError } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { pause } from "../http/abort.ts";
import type { CallOptions } from "../http/http-exchange.ts";
import { isAway, isUnknownAgent, retryDelayMs, type RetryDelays } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { InboxSource } from "./inbox-source.ts";
import type { LeasedItem, LeaseRenewal } from "./lease-renewal.ts";
import { type FilledAgentOptions, isNamed } from "./relay-agent-options.ts";

export interface MessageIntakeParts {
  readonly client: RelayClient;
  readonly source: InboxSource;
  readonly options: FilledAgentOptions;
  readonly delays: RetryDelays;
  readonly random?: (() => number) | undefined;
  readonly renewal: LeaseRenewal;
  readonly errors: BackgroundErrors;
  /** Handles one message. Never rejects. */
  readonly work: (item: LeasedItem) => Promise<void>;
  /** Registers the agent again after the relay lost it. */
  readonly register: () => Promise<void>;
  /** Ends the intake: no message is begun afterwards. */
  readonly signal: AbortSignal;
}

/** Attempts to read the queue; if all fail, the agent probably must not read it. */
const CHECKS_MAX = 3;

interface Stranded {
  /** Leases to release. */
  readonly leases: readonly LeaseRef[];
  /** After this time there may be more. */
  readonly againMs: number;
}

const NOTHING: Stranded = { leases: [], againMs: Infinity };

/** Leases messages while handlers are free, and retries while the relay is unreachable. */
export class MessageIntake {
  readonly #parts: MessageIntakeParts;
  readonly #working = new Set<Promise<void>>();
  /** Leased, but the agent stopped before it began them. */
  readonly #unbegun: LeaseRef[] = [];
  /** Remaining checks for messages that are leased to this worker without its knowledge. */
  #checksLeft = 0;
  /** By then the relay has answered or dropped the last lost lease request. */
  #lostUntilMs = 0;
  /** The time of the next check. */
  #checkAgainMs = 0;
  #onRoom = (): void => {};

  constructor(parts: MessageIntakeParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => this.#onRoom(), { once: true });
  }

  /** Runs until the signal is aborted. Never rejects. */
  async run(): Promise<void> {
    const { signal, delays, random, errors, options } = this.#parts;
    // As after a lost answer: an earlier process of this name may hold leases, and may still get some.
    if (options.resumes !== undefined) this.#lost(options.waitMs);
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#leaseSome();
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

  /** Resolves when every handler has ended and its outcome is settled. */
  async idle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  /**
   * Releases messages that were leased to this worker but not begun. Otherwise they would stay leased until an operator
   * acts, unless their sender declared them idempotent.
   */
  async releaseUnbegun(options: CallOptions): Promise<void> {
    const { client } = this.#parts;
    const { id } = this.#parts.options;
    const leases = this.#unbegun.splice(0);
    const checkedAtMs = performance.now();
    const found = this.#checksLeft > 0 ? await this.#stranded(options) : NOTHING;
    leases.push(...found.leases);
    if (leases.length > 0) await client.release(id, { leases }, options);
    const isLost = checkedAtMs < this.#lostUntilMs;
    this.#checksLeft = isLost || found.againMs < Infinity ? CHECKS_MAX : 0;
    this.#checkAgainMs = Math.min(isLost ? this.#lostUntilMs : Infinity, checkedAtMs + found.againMs);
  }

  /** Leases of this worker, or of its earlier processes, that this process does not hold. */
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
      // Without permission to read the queue, this is left to an operator.
      if (reason instanceof RelayError && reason.code === "permission_denied") return NOTHING;
      throw reason;
    }
  }

  /**
   * How long the lease lasts, by the relay's clock. Another process of the same name may work on the message, and
   * renews its lease while it does.
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

  async #leaseSome(): Promise<void> {
    const { source, options, signal } = this.#parts;
    const { leaseMs, waitMs, worker } = options;
    const room = options.concurrency - this.#working.size;
    if (room === 0) {
      await this.#room();
      return;
    }
    if (this.#checksLeft > 0 && performance.now() >= this.#checkAgainMs) await this.#releaseLost();
    const request = { max: room, lease_ms: leaseMs, wait_ms: this.#waitMs(), worker };
    try {
      const { messages } = await source.lease(request, { signal });
      for (const item of messages) this.#begin(item);
    } catch (reason) {
      // The relay may have leased messages to this worker, and only its answer got lost.
      if (signal.aborted || isAway(reason)) this.#lost(waitMs);
      if (isUnknownAgent(reason)) await this.#parts.register();
      throw reason;
    }
  }

  /** At most until the next check. */
  #waitMs(): number {
    const { waitMs } = this.#parts.options;
    if (this.#checksLeft === 0) return waitMs;
    return Math.max(0, Math.min(waitMs, Math.ceil(this.#checkAgainMs - performance.now())));
  }

  /** The relay may not notice a broken connection, and may lease to it until `waitMs` is over. */
  #lost(waitMs: number): void {
    this.#checksLeft = CHECKS_MAX;
    this.#checkAgainMs = performance.now();
    this.#lostUntilMs = this.#checkAgainMs + waitMs;
  }

  /** When the queue cannot be read, lost leases are left to an operator. */
  async #releaseLost(): Promise<void> {
    const { errors, signal } = this.#parts;
    try {
      await this.releaseUnbegun({ signal });
    } catch (reason) {
      signal.throwIfAborted();
      this.#checksLeft -= 1;
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
