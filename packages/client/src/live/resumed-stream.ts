import { RelayError } from "@a2a-relay/protocol";
import { pause } from "../http/abort.ts";
import { Failure, TransportBlocked } from "../http/http-answer.ts";
import { type CallOptions, type HttpExchange, LateAnswer, type Path } from "../http/http-exchange.ts";
import { retryDelayMs, type RetryDelays } from "../http/retry.ts";
import type { ServerSentEvent } from "../http/sse-parser.ts";
import { IDLE_MS, SseReader } from "../http/sse-reader.ts";

export interface FollowOptions extends CallOptions {
  /** Told of each failure after which the stream is opened again, so that a long absence does not go unnoticed. */
  readonly onAway?: ((error: RelayError) => void) | undefined;
}

export interface FollowedCall {
  readonly path: Path;
  readonly query: object;
  /** The cursor after which to begin. */
  readonly since: string | undefined;
}

export interface ResumedStreamParts {
  readonly exchange: HttpExchange;
  readonly delays: RetryDelays;
  /** How long the first byte may take. Where a proxy gathers answers before it passes them on, it never comes. */
  readonly firstByteMs?: number | undefined;
  /** A silent stream is dead after this time, or after that of three heartbeats where the relay's take longer. */
  readonly idleMs?: number | undefined;
  readonly random?: (() => number) | undefined;
}

const FIRST_BYTE_MS = 5_000;
/** One may be late, and one after it; a stream on which so many did not come is dead. */
const BEATS_LOST = 3;

/** A stream of events that outlives its connections: it goes on after the last event that was taken. */
export class ResumedStream {
  readonly #call: FollowedCall;
  readonly #parts: ResumedStreamParts;
  readonly #options: FollowOptions;
  #cursor: string | undefined;
  #reader: SseReader | undefined;
  #openedAtMs = 0;
  #hasFlowed = false;
  #failures = 0;
  /** What the relay itself asks for between two connections. */
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
   * Undefined once the relay says that nothing more will come. Rejects with what trying again cannot mend, or with the
   * reason of the signal.
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

  /** Opens the stream unless it is open: one try. False when the relay says that nothing more will come. */
  async open(): Promise<boolean | Failure> {
    if (this.#reader !== undefined) return true;
    const { exchange, firstByteMs = FIRST_BYTE_MS, idleMs = IDLE_MS } = this.#parts;
    const { path, query } = this.#call;
    const { signal } = this.#options;
    const call = { path, query: { ...query, since: this.#cursor }, limitMs: firstByteMs };
    const answer = await exchange.stream(call, { signal });
    if (answer === undefined) return false;
    if (answer instanceof Failure) {
      const isLate = answer.error instanceof LateAnswer;
      return isLate ? this.#blocked(exchange.urlOf({ path }), firstByteMs) : answer;
    }
    const { body, heartbeatMs = 0 } = answer;
    const reader = new SseReader(body, { signal, idleMs: Math.max(idleMs, BEATS_LOST * heartbeatMs) });
    const beginning = await reader.beginsWithin(firstByteMs);
    if (beginning === "ended") return ENDED;
    if (beginning === "silent") return this.#blocked(exchange.urlOf({ path }), firstByteMs);
    this.#reader = reader;
    this.#openedAtMs = performance.now();
    this.#hasFlowed = true;
    return true;
  }

  /** Hangs up; the next call opens it anew, after what was taken last. */
  close(): void {
    if (this.#reader === undefined) return;
    // Where streams end at once, again and again, opening one is no success yet.
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

  /** What flowed once will flow again; what never did is held back for good. */
  #blocked(url: string, firstByteMs: number): Failure {
    const message = `GET ${url} brought nothing within ${firstByteMs} ms; does a proxy on the way hold streams back?`;
    return new Failure(new TransportBlocked(message), this.#hasFlowed ? "unknown" : "refused");
  }

  async #pauseAfter(failure: Failure): Promise<void> {
    const { delays, random } = this.#parts;
    const { firstMs, maxMs } = delays;
    this.#failures += 1;
    // Where the stream ended in an orderly way the relay is still there, perhaps to say that this was all.
    const askedMs = failure === ENDED ? 0 : Math.min(this.#retryMs, maxMs);
    const ceilings = { firstMs: Math.max(firstMs, askedMs), maxMs };
    const delayMs = Math.min(failure.retryAfterMs, maxMs) + retryDelayMs(this.#failures, ceilings, random);
    await pause(delayMs, this.#options);
  }
}

/** The relay, or something on the way, ended the stream in an orderly way: it stops, or wants no long connections. */
const ENDED = new Failure(new RelayError("unavailable", "the stream has ended"), "not_done");
