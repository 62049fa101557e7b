import { type LeaseRequest, type LeaseResponse, RelayError } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { onAbort } from "../http/abort.ts";
import { Failure } from "../http/http-answer.ts";
import { whyBlocked } from "../http/http-exchange.ts";
import { ResumedStream, type ResumedStreamParts } from "../live/resumed-stream.ts";
import type { InboxSource } from "./inbox-source.ts";

export interface StreamMailSourceParts extends ResumedStreamParts {
  readonly client: RelayClient;
  readonly agentId: string;
  /** How long it relies on notices alone before it looks by itself. */
  readonly lookAgainMs?: number | undefined;
}

/** MailboxMessage that was kept for another worker may become free without a notice of its own. */
const LOOK_AGAIN_MS = 60_000;

/** A stream of notices says when there is mail, which is then leased by a request that does not wait. */
export class StreamMailSource implements InboxSource {
  readonly #parts: StreamMailSourceParts;
  readonly #life = new AbortController();
  readonly #stream: ResumedStream;
  /** Counts, so that a notice that comes during a look is not missed. */
  #notices = 0;
  #error: Error | undefined;
  #wake = (): void => {};

  private constructor(parts: StreamMailSourceParts) {
    this.#parts = parts;
    const call = { path: ["mailbox", parts.agentId, "stream"], query: { notice: true }, since: undefined };
    const { signal } = this.#life;
    this.#stream = new ResumedStream(call, parts, { signal, onAway: (error) => this.#fail(error) });
  }

  static async open(
    parts: StreamMailSourceParts,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<StreamMailSource> {
    const source = new StreamMailSource(parts);
    const unsubscribe = onAbort(signal, () => source.#life.abort(signal.reason));
    const opened = await source.#stream.open().finally(unsubscribe);
    if (opened instanceof Failure) {
      if (opened.outcome !== "refused") throw opened.error;
      throw await whyBlocked(parts.exchange, parts.agentId, "no stream of notices comes through", { signal });
    }
    void source.#listen();
    return source;
  }

  async lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    const { client, agentId, lookAgainMs = LOOK_AGAIN_MS } = this.#parts;
    const untilMs = performance.now() + lookAgainMs;
    for (;;) {
      if (this.#error !== undefined) throw this.#error;
      const seen = this.#notices;
      const answer = await client.lease(agentId, { ...request, wait_ms: 0 }, options);
      const leftMs = untilMs - performance.now();
      if (answer.messages.length > 0 || leftMs <= 0) return answer;
      if (this.#notices === seen && this.#error === undefined) await this.#news(leftMs, options);
    }
  }

  async close(): Promise<void> {
    if (!this.#life.signal.aborted) this.#life.abort(new RelayError("unavailable", "this stream was closed"));
  }

  /** Never rejects. */
  async #listen(): Promise<void> {
    try {
      while ((await this.#stream.next()) !== undefined) {
        this.#notices += 1;
        this.#wake();
      }
      this.#fail(new RelayError("unavailable", "the relay ended the stream of notices"));
    } catch (reason) {
      this.#fail(RelayError.from(reason));
    } finally {
      this.#stream.close();
    }
  }

  /** Whoever waits for mail hears that the relay is away, also while the stream keeps trying. */
  #fail(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  /** Resolves with a notice, a failure or the end of the time; rejects when the signal is aborted. */
  #news(limitMs: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const settle = (): void => {
        clearTimeout(timer);
        unsubscribe();
        if (signal.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(settle, limitMs);
      const unsubscribe = onAbort(signal, settle);
      this.#wake = settle;
    });
  }
}
