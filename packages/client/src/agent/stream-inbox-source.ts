import { type LeaseRequest, type LeaseResponse, operations, RelayError } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { onAbort } from "../http/abort.ts";
import { Failure } from "../http/http-answer.ts";
import { whyBlocked } from "../http/http-exchange.ts";
import { ResumedStream, type ResumedStreamParts } from "../live/resumed-stream.ts";
import type { InboxSource } from "./inbox-source.ts";

export interface StreamInboxSourceParts extends ResumedStreamParts {
  readonly client: RelayClient;
  readonly agentId: string;
  /** How long it relies on notices alone before it polls, in milliseconds. */
  readonly pollAgainMs?: number | undefined;
}

/** A message of another worker may become available again without a notice. */
const POLL_AGAIN_MS = 60_000;

/** Leases messages by requests that do not wait, whenever a stream of notices announces one. */
export class StreamInboxSource implements InboxSource {
  readonly #parts: StreamInboxSourceParts;
  readonly #closing = new AbortController();
  readonly #stream: ResumedStream;
  /** A count, so that a notice during a lease request is not missed. */
  #notices = 0;
  #error: Error | undefined;
  #wake = (): void => {};

  private constructor(parts: StreamInboxSourceParts) {
    this.#parts = parts;
    const call = {
      operation: operations.mailboxes.stream,
      params: { agent_id: parts.agentId },
      query: { notice: true },
      since: undefined,
    };
    const { signal } = this.#closing;
    this.#stream = new ResumedStream(call, parts, { signal, onAway: (error) => this.#fail(error) });
  }

  static async open(
    parts: StreamInboxSourceParts,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<StreamInboxSource> {
    const source = new StreamInboxSource(parts);
    const unsubscribe = onAbort(signal, () => source.#closing.abort(signal.reason));
    const opened = await source.#stream.open().finally(unsubscribe);
    if (opened instanceof Failure) {
      if (opened.outcome !== "refused") throw opened.error;
      throw await whyBlocked(parts.exchange, parts.agentId, "no stream of notices comes through", { signal });
    }
    void source.#listen();
    return source;
  }

  async lease(request: LeaseRequest, options: { readonly signal: AbortSignal }): Promise<LeaseResponse> {
    const { client, agentId, pollAgainMs = POLL_AGAIN_MS } = this.#parts;
    const untilMs = performance.now() + pollAgainMs;
    for (;;) {
      if (this.#error !== undefined) throw this.#error;
      const seen = this.#notices;
      const answer = await client.lease(agentId, { ...request, wait_ms: 0 }, options);
      const leftMs = untilMs - performance.now();
      if (answer.messages.length > 0 || leftMs <= 0) return answer;
      if (this.#notices === seen && this.#error === undefined) await this.#notice(leftMs, options);
    }
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted)
      this.#closing.abort(new RelayError("unavailable", "this stream was closed"));
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

  /** A waiting lease request fails, also while the stream reconnects. */
  #fail(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  /** Resolves with a notice, a failure or after `limitMs`; rejects when the signal is aborted. */
  #notice(limitMs: number, { signal }: { readonly signal: AbortSignal }): Promise<void> {
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
