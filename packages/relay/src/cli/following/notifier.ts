import { setTimeout as sleep } from "node:timers/promises";
import type { CommandContext } from "../command-line/command-context.ts";
import { backoffMs, followOptions, isBlocked, type KeepTrying } from "./keep-trying.ts";

interface NotifierOptions {
  readonly agent: string;
  /** How long one long poll waits, where neither a WebSocket nor a stream gets through. */
  readonly waitMs: number;
  readonly keepTrying: KeepTrying;
}

/** A message that was kept for another worker may become available without a notice. */
const POLL_AGAIN_MS = 60_000;

/** Tells a worker when to try for a lease: after a notice of the relay, or by peeking where a proxy blocks notices. */
export class Notifier implements Disposable {
  readonly #context: CommandContext;
  readonly #options: NotifierOptions;
  readonly #leaving = new AbortController();
  readonly #signal: AbortSignal;
  #notices = 0;
  #isListening = false;
  #isBlocked = false;
  #error: Error | undefined;
  #peekedAtMs = Number.NEGATIVE_INFINITY;
  #wake = (): void => {};

  constructor(context: CommandContext, options: NotifierOptions) {
    this.#context = context;
    this.#options = options;
    this.#signal = AbortSignal.any([context.signal, this.#leaving.signal]);
    this.#signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** How many notices came so far. Read it before trying for a lease, so that no notice is missed. */
  get notices(): number {
    return this.#notices;
  }

  /** Resolves once more than `before` notices came, and after a minute without any. */
  async noticeAfter(before: number): Promise<void> {
    if (!this.#isListening) {
      this.#isListening = true;
      void this.#listen();
    }
    if (this.#isBlocked) return this.#peek();
    if (this.#notices === before && this.#error === undefined) await this.#nextNotice();
    this.#signal.throwIfAborted();
    if (this.#error !== undefined) throw this.#error;
  }

  [Symbol.dispose](): void {
    this.#leaving.abort();
  }

  /** Never rejects. */
  async #listen(): Promise<void> {
    const { client } = this.#context;
    const options = { ...followOptions(this.#context), signal: this.#signal };
    try {
      for await (const _ of client.followMailbox(this.#options.agent, { notice: true }, options))
        this.#notify();
    } catch (reason) {
      if (isBlocked(reason)) this.#isBlocked = true;
      else this.#error = reason instanceof Error ? reason : new Error(String(reason));
      this.#notify();
    }
  }

  #notify(): void {
    this.#notices += 1;
    this.#wake();
  }

  async #peek(): Promise<void> {
    const { client, signal } = this.#context;
    const { agent, waitMs, keepTrying } = this.#options;
    // The last peek saw a message that this worker could not lease: it pauses before the next one.
    const pauseMs = this.#peekedAtMs + backoffMs(1) - performance.now();
    if (pauseMs > 0) await sleep(pauseMs, undefined, { signal });
    const query = { peek: true, limit: 1, wait_ms: waitMs };
    const { messages } = await keepTrying(() => client.readMailbox(agent, query, { signal }));
    if (messages.length > 0) this.#peekedAtMs = performance.now();
  }

  #nextNotice(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, POLL_AGAIN_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#signal.aborted) this.#wake();
    });
  }
}
