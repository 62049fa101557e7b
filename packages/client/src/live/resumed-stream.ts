import { type Operation, RelayError } from "@a2a-relay/protocol";
import { pause } from "../http/abort.ts";
import { Failure, TransportBlocked } from "../http/http-answer.ts";
import { type AddressParts, type CallOptions, type HttpExchange, LateAnswer } from "../http/http-exchange.ts";
import { retryDelayMs, type RetryDelays } from "../http/retry.ts";
import type { ServerSentEvent } from "../http/sse-parser.ts";
import { IDLE_MS, SseReader } from "../http/sse-reader.ts";

export interface FollowOptions extends CallOptions {
  /** Called after each failure, before the stream is opened again. */
  readonly onAway?: ((error: RelayError) => void) | undefined;
}

export interface FollowedCall extends AddressParts {
  readonly operation: Operation;
  /** The cursor after which to begin. */
  readonly since: string | undefined;
}

export interface ResumedStreamParts {
  readonly exchange: HttpExchange;
  readonly delays: RetryDelays;
  /** How long the first byte may take. Behind a proxy that buffers answers it never comes. */
  readonly firstByteMs?: number | undefined;
  /** A silent stream counts as broken after this time, or after three heartbeats of the relay if that is longer. */
  readonly idleMs?: number | undefined;
  readonly random?: (() => number) | undefined;
}

const FIRST_BYTE_MS = 5_000;
/** A stream counts as broken after this many missing heartbeats. */
const HEARTBEATS_LOST_MAX = 3;

/** A stream of events over many connections: each one resumes after the last event that was read. */
export class ResumedStream {
  readonly #call: FollowedCall;
  readonly #parts: ResumedStreamParts;
  readonly #options: FollowOptions;
  #cursor: string | undefined;
  #reader: SseReader | undefined;
  #openedAtMs = 0;
  #hasFlowed = false;
  #failures = 0;
  /** The delay that the relay asks for between two connections. */
  #retryMs = 0;

  constructor(call: FollowedCall, parts: ResumedStreamParts, options: FollowOptions) {
    this.#call = call;
    this.#parts = parts;
    this.#options = options;
    this.#cursor = call.since;
  }

  get cursor(): string | undefined {
    return this.#cursor;
  }

  /**
   * Undefined once the relay says that the stream has ended for good. Rejects with errors that a retry cannot fix, or
   * with the reason of the signal.
   */
  async next(): Promise<ServerSentEvent | undefined> {
    for (;;) {
      const event = await this.#take();
      if (event === undefined || "data" in event) return event;
      this.close();
      if (event.outcome === "refused") throw event.error;
      if (event !== ENDED) this.#options.onAway?.(event.error);
      await this.#pauseAfter(event);
    }
  }

  /** One attempt to open the stream. False when the relay says that it has ended for good. */
  async open(): Promise<boolean | Failure> {
    if (this.#reader !== undefined) return true;
    const { exchange, firstByteMs = FIRST_BYTE_MS, idleMs = IDLE_MS } = this.#parts;
    const { operation, params, query } = this.#call;
    const { signal } = this.#options;
    const url = exchange.urlOf(operation, { params });
    const call = { operation, params, query: { ...query, since: this.#cursor }, limitMs: firstByteMs };
    const answer = await exchange.stream(call, { signal });
    if (answer === undefined) return false;
    if (answer instanceof Failure) {
      const isLate = answer.error instanceof LateAnswer;
      return isLate ? this.#blocked(url, firstByteMs) : answer;
    }
    const { body, heartbeatMs = 0 } = answer;
    const reader = new SseReader(body, {
      signal,
      idleMs: Math.max(idleMs, HEARTBEATS_LOST_MAX * heartbeatMs),
    });
    const beginning = await reader.beginsWithin(firstByteMs);
    if (beginning === "ended") return ENDED;
    if (beginning === "silent") return this.#blocked(url, firstByteMs);
    this.#reader = reader;
    this.#openedAtMs = performance.now();
    this.#hasFlowed = true;
    return true;
  }

  /** The next call opens the stream again, after the last event that was read. */
  close(): void {
    if (this.#reader === undefined) return;
    // A stream that ends at once does not reset the backoff.
    if (performance.now() - this.#openedAtMs > this.#parts.delays.maxMs) this.#failures = 0;
    this.#retryMs = this.#reader.retryMs ?? this.#retryMs;
    this.#reader.cancel();
    this.#reader = undefined;
  }

  async #take(): Promise<ServerSentEvent | Failure | undefined> {
    try {
      const opened = await this.open();
      if (opened instanceof Failure) return opened;
      if (!opened) return undefined;
      const event = await this.#reader?.next();
      if (event === undefined) return ENDED;
      this.#failures = 0;
      if (event.id !== "") this.#cursor = event.id;
      return event;
    } catch (reason) {
      this.#options.signal?.throwIfAborted();
      if (!(reason instanceof RelayError)) throw reason;
      return new Failure(reason, reason.code === "unavailable" ? "unknown" : "refused");
    }
  }

  /** A stream that worked before will work again; a first one without a byte is blocked. */
  #blocked(url: string, firstByteMs: number): Failure {
    const message = `GET ${url} brought nothing within ${firstByteMs} ms; does a proxy on the way hold streams back?`;
    return new Failure(new TransportBlocked(message), this.#hasFlowed ? "unknown" : "refused");
  }

  async #pauseAfter(failure: Failure): Promise<void> {
    const { delays, random } = this.#parts;
    const { firstMs, maxMs } = delays;
    this.#failures += 1;
    // After an orderly end the relay can be reached, perhaps to say that the stream has ended for good.
    const askedMs = failure === ENDED ? 0 : Math.min(this.#retryMs, maxMs);
    const ceilings = { firstMs: Math.max(firstMs, askedMs), maxMs };
    const delayMs = Math.min(failure.retryAfterMs, maxMs) + retryDelayMs(this.#failures, ceilings, random);
    await pause(delayMs, this.#options);
  }
}

/** The relay or a proxy closed the connection in an orderly way. */
const ENDED = new Failure(new RelayError("unavailable", "the stream has ended"), "not_done");
