import type { LeaseRequest, LeaseResponse } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import { type InboxSource, type InboxTransport, PollMailSource, SocketMailSource } from "./inbox-source.ts";
import type { InboxTransportChoice } from "./relay-agent-options.ts";
import { StreamMailSource } from "./stream-inbox-source.ts";

export interface BestMailSourceOptions {
  /** How long a way that was closed is left alone. */
  readonly againMs?: number | undefined;
  readonly random?: (() => number) | undefined;
  readonly nowMs?: (() => number) | undefined;
}

/** A proxy seldom changes its mind; still, the agent should not need a restart to notice. */
const AGAIN_MS = 120_000;

interface Opened {
  readonly source: InboxSource;
  /** Its place among the transports. */
  readonly rank: number;
}

/**
 * Takes mail in the best way that is open. A way that is closed is left alone for some minutes and then tried again
 * beside the one that works. When the relay itself is away, nothing is concluded from that.
 */
export class BestMailSource implements InboxSource {
  readonly #transports: readonly InboxTransport[];
  readonly #againMs: number;
  readonly #random: () => number;
  readonly #nowMs: () => number;
  /** Until when each of the transports is left alone. */
  readonly #closedUntilMs: number[];
  readonly #life = new AbortController();
  #current: Opened | undefined;
  #better: Opened | undefined;
  #trying: Promise<void> | undefined;

  /** `transports`: best first. */
  constructor(transports: readonly InboxTransport[], options: BestMailSourceOptions = {}) {
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
      // After an absence of the relay, the best way may be another one.
      if (!signal.aborted) await this.#leave();
      throw reason;
    }
  }

  async close(): Promise<void> {
    this.#life.abort();
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

  /** Beside the one that works, since it may take its time. Never rejects. */
  async #tryBetter(rank: number): Promise<void> {
    try {
      this.#better = await this.#open(rank, this.#life.signal);
    } catch {
      for (let index = 0; index < rank; index += 1) this.#markClosed(index);
    } finally {
      this.#trying = undefined;
    }
  }

  /** The best of the first so many that is open. */
  async #open(count: number, signal: AbortSignal): Promise<Opened> {
    let blocked = new TransportBlocked("no way to the relay is open");
    for (const [rank, transport] of this.#transports.slice(0, count).entries()) {
      // Alone it is tried in any case: there is no other.
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

  /** With jitter, so that all agents behind a proxy do not try it in the same moment. */
  #markClosed(rank: number): void {
    this.#closedUntilMs[rank] = this.#nowMs() + this.#againMs * (1 + this.#random());
  }
}

export interface MailSourceParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly options: FilledClientOptions;
}

type TransportName = Exclude<InboxTransportChoice, "auto">;

const BEST_FIRST: readonly TransportName[] = ["websocket", "sse", "poll"];

/** The agent's mail, in the way that was chosen. */
export function createMailSource(parts: MailSourceParts, choice: InboxTransportChoice): InboxSource {
  const { client, agentId, options } = parts;
  const exchange = new HttpExchange(options);
  const delays = { firstMs: options.retryDelayMs, maxMs: options.retryDelayMsMax };
  const transports: Readonly<Record<TransportName, InboxTransport>> = {
    websocket: { open: (call) => SocketMailSource.open({ exchange, options, agentId }, call) },
    sse: { open: (call) => StreamMailSource.open({ client, exchange, agentId, delays }, call) },
    poll: new PollMailSource(client, agentId),
  };
  const names = choice === "auto" ? BEST_FIRST : [choice];
  return new BestMailSource(names.map((name) => transports[name]));
}
