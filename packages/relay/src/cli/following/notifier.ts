import { setTimeout as sleep } from "node:timers/promises";
import type { CommandContext } from "../command-line/command-context.ts";
import { followOptions, isBlocked, backoffMs, type KeepTrying } from "./keep-trying.ts";

export interface MailBellOptions {
  readonly agent: string;
  /** How long one request waits where neither a socket nor a stream comes through. */
  readonly waitMs: number;
  readonly keepTrying: KeepTrying;
}

/** MailboxMessage that was kept for another worker may become free without a notice of its own. */
const LOOK_AGAIN_MS = 60_000;

/** Says when it is worth looking for mail, by notices as they come, or by looking without taking where none do. */
export class MailBell implements Disposable {
  readonly #context: CommandContext;
  readonly #options: MailBellOptions;
  readonly #leaving = new AbortController();
  readonly #signal: AbortSignal;
  #rings = 0;
  #isListening = false;
  #isBlocked = false;
  #error: Error | undefined;
  #seenAtMs = Number.NEGATIVE_INFINITY;
  #wake = (): void => {};

  constructor(context: CommandContext, options: MailBellOptions) {
    this.#context = context;
    this.#options = options;
    this.#signal = AbortSignal.any([context.signal, this.#leaving.signal]);
    this.#signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** How often it has rung so far. Ask before looking, so that no ring is missed. */
  get rings(): number {
    return this.#rings;
  }

  /** Resolves once it has rung more often than that, or when it has been silent for so long that looking is better. */
  async rung(before: number): Promise<void> {
    if (!this.#isListening) {
      this.#isListening = true;
      void this.#listen();
    }
    if (this.#isBlocked) return this.#look();
    if (this.#rings === before && this.#error === undefined) await this.#news();
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
        this.#ring();
    } catch (reason) {
      if (isBlocked(reason)) this.#isBlocked = true;
      else this.#error = reason instanceof Error ? reason : new Error(String(reason));
      this.#ring();
    }
  }

  #ring(): void {
    this.#rings += 1;
    this.#wake();
  }

  async #look(): Promise<void> {
    const { client, signal } = this.#context;
    const { agent, waitMs, keepTrying } = this.#options;
    // Another worker was faster, or the mail is kept for another one: a moment later it looks different.
    const pauseMs = this.#seenAtMs + backoffMs(1) - performance.now();
    if (pauseMs > 0) await sleep(pauseMs, undefined, { signal });
    const look = { peek: true, limit: 1, wait_ms: waitMs };
    const { messages } = await keepTrying(() => client.readMailbox(agent, look, { signal }));
    if (messages.length > 0) this.#seenAtMs = performance.now();
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_AGAIN_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#signal.aborted) this.#wake();
    });
  }
}
