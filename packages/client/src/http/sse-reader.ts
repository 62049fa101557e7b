import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { CallOptions } from "./http-exchange.ts";
import { onAbort } from "./abort.ts";
import { type ServerSentEvent, SseParser } from "./sse-parser.ts";

export interface SseReaderOptions extends CallOptions {
  /** A stream without a byte for this time counts as broken. Default 50,000. */
  readonly idleMs?: number | undefined;
  /** The longest event. Default: room for the largest message, escaped. */
  readonly charsMax?: number | undefined;
}

/** A little more than three default heartbeats of a relay. */
export const IDLE_MS = 50_000;
const EVENT_CHARS_MAX = 16 * LIMITS.bodyBytesMax;

/**
 * Reads server-sent events from the body of an answer. It reads only when its caller asks for the next event, so a slow
 * reader slows the relay down instead of filling memory.
 */
export class SseReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  readonly #idleMs: number;
  readonly #decoder = new TextDecoder();
  readonly #parser: SseParser;
  readonly #events: ServerSentEvent[] = [];
  #isEnded = false;

  constructor(body: ReadableStream<Uint8Array>, options: SseReaderOptions = {}) {
    this.#reader = body.getReader();
    this.#signal = options.signal;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#parser = new SseParser(options.charsMax ?? EVENT_CHARS_MAX);
  }

  get retryMs(): number | undefined {
    return this.#parser.retryMs;
  }

  /** Whether the first byte comes in time; a heartbeat counts. */
  async beginsWithin(limitMs: number): Promise<"flows" | "ended" | "silent"> {
    try {
      return (await this.#pull(limitMs)) ? "flows" : "ended";
    } catch (reason) {
      if (reason instanceof SilentStream) return "silent";
      throw reason;
    }
  }

  /** Undefined at the end of the stream. `unavailable` when it broke or fell silent. */
  async next(): Promise<ServerSentEvent | undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return event;
      if (!(await this.#pull(this.#idleMs))) return undefined;
    }
  }

  /** May be called after the end. */
  cancel(): void {
    this.#isEnded = true;
    this.#reader.cancel().catch(() => undefined);
  }

  /** Reads one chunk. False at the end. */
  async #pull(limitMs: number): Promise<boolean> {
    this.#signal?.throwIfAborted();
    if (this.#isEnded) return false;
    let isSilent = false;
    // Canceling ends a pending read, also with a custom `fetch` that ignores the signal.
    const unsubscribe = onAbort(this.#signal, () => this.cancel());
    const timer = setTimeout(() => {
      isSilent = true;
      this.cancel();
    }, limitMs);
    try {
      const { done, value } = await this.#reader.read();
      this.#signal?.throwIfAborted();
      if (isSilent) throw new SilentStream(limitMs);
      if (done) this.#isEnded = true;
      else this.#events.push(...this.#parser.push(this.#decoder.decode(value, { stream: true })));
      return !done;
    } catch (reason) {
      this.#signal?.throwIfAborted();
      this.cancel();
      if (reason instanceof RelayError) throw reason;
      const why = reason instanceof Error ? reason.message : String(reason);
      throw new RelayError("unavailable", `the stream broke: ${why}`, { cause: reason });
    } finally {
      clearTimeout(timer);
      unsubscribe();
    }
  }
}

class SilentStream extends RelayError {
  constructor(limitMs: number) {
    super("unavailable", `the stream was silent for ${limitMs} ms, so something on the way has lost it`);
  }
}
