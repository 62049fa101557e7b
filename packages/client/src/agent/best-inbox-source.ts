import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import { type InboxSource, type InboxTransport, PollInboxSource, SocketInboxSource } from "./inbox-source.ts";
import type { InboxTransportChoice } from "./relay-agent-options.ts";
import { StreamInboxSource } from "./stream-inbox-source.ts";

export interface BestInboxSourceOptions {
  /** How long a blocked transport is not tried, in milliseconds. */
  readonly againMs?: number | undefined;
  readonly random?: (() => number) | undefined;
  readonly nowMs?: (() => number) | undefined;
}

/** A proxy seldom changes; still, the agent should not need a restart to use a better transport. */
const AGAIN_MS = 120_000;

interface Opened {
  readonly source: InboxSource;
  /** Its index among the transports. */
  readonly rank: number;
}

/**
 * Leases messages over the best transport that works. A blocked transport is tried again after some minutes, while the
 * working one stays in use. An unreachable relay does not make a transport count as blocked.
 */
export class BestInboxSource implements InboxSource {
  readonly #transports: readonly InboxTransport[];
  readonly #againMs: number;
  readonly #random: () => number;
  readonly #nowMs: () => number;
  /** Until when each transport counts as blocked. */
  readonly #closedUntilMs: number[];
  readonly #closing = new AbortController();
  #current: Opened | undefined;
  #better: Opened | undefined;
  #trying: Promise<void> | undefined;

  /** `transports`: best first. */
  constructor(transports: readonly InboxTransport[], options: BestInboxSourceOptions = {}) {
    this.#transports = transports;
    this.#againMs = options.againMs ?? AGAIN_MS;
    this.#random = options.random ?? Math.random;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#closedUntilMs = transports.map(() => 0);
  }

  async lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    const { signal } = options;
    await this.#choose(signal);
    const source = this.#current?.source;
    if (source === undefined) throw new TransportBlocked("no way to the relay is open");
    try {
      return await source.lease(request, options);
    } catch (reason) {
      // When the relay comes back, another transport may be the best one.
      if (!signal.aborted) await this.#leave();
      throw reason;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#trying;
    await this.#better?.source.close();
    await this.#leave();
  }

  async #leave(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    await current?.source.close();
  }

  async #choose(signal: AbortSignal): Promise<void> {
    if (this.#better !== undefined) {
      await this.#leave();
      this.#current = this.#better;
      this.#better = undefined;
    }
    this.#current ??= await this.#open(this.#transports.length, signal);
    const { rank } = this.#current;
    const isWorthIt = this.#transports.some((_, index) => index < rank && this.#isOpen(index));
    if (isWorthIt) this.#trying ??= this.#tryBetter(rank);
  }

  /** Runs while the current transport stays in use. Never rejects. */
  async #tryBetter(rank: number): Promise<void> {
    try {
      this.#better = await this.#open(rank, this.#closing.signal);
    } catch {
      for (let index = 0; index < rank; index += 1) this.#markClosed(index);
    } finally {
      this.#trying = undefined;
    }
  }

  /** Opens the best of the first `count` transports. */
  async #open(count: number, signal: AbortSignal): Promise<Opened> {
    let blocked = new TransportBlocked("no way to the relay is open");
    for (const [rank, transport] of this.#transports.slice(0, count).entries()) {
      // A single transport is always tried: there is no other.
      if (!this.#isOpen(rank) && this.#transports.length > 1) continue;
      try {
        return { source: await transport.open({ signal }), rank };
      } catch (reason) {
        signal.throwIfAborted();
        if (!(reason instanceof TransportBlocked)) throw reason;
        this.#markClosed(rank);
        blocked = reason;
      }
    }
    throw blocked;
  }

  #isOpen(rank: number): boolean {
    return (this.#closedUntilMs[rank] ?? 0) <= this.#nowMs();
  }

  /** With jitter, so that the agents behind one proxy do not retry at the same time. */
  #markClosed(rank: number): void {
    this.#closedUntilMs[rank] = this.#nowMs() + this.#againMs * (1 + this.#random());
  }
}

export interface InboxSourceParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly options: FilledClientOptions;
}

type TransportName = Exclude<InboxTransportChoice, "auto">;

const BEST_FIRST: readonly TransportName[] = ["websocket", "sse", "poll"];

export function createInboxSource(parts: InboxSourceParts, choice: InboxTransportChoice): InboxSource {
  const { client, agentId, options } = parts;
  const exchange = new HttpExchange(options);
  const delays = { firstMs: options.retryDelayMs, maxMs: options.retryDelayMsMax };
  const transports: Readonly<Record<TransportName, InboxTransport>> = {
    websocket: { open: (call) => SocketInboxSource.open({ exchange, options, agentId }, call) },
    sse: { open: (call) => StreamInboxSource.open({ client, exchange, agentId, delays }, call) },
    poll: new PollInboxSource(client, agentId),
  };
  const names = choice === "auto" ? BEST_FIRST : [choice];
  return new BestInboxSource(names.map((name) => transports[name]));
}
