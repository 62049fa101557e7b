import { retryDelayMs } from "../../packages/client/src/http/retry.ts";
import type { InboxItem } from "./mailbox-item.ts";
import type { MailboxStream, StreamAddress, StreamListener, StreamOpener } from "./mailbox-stream.ts";

/** As the client waits unless it is told otherwise. */
const FIRST_DELAY_MS = 200;
const DELAY_MS_MAX = 10_000;

/** A reader that comes back by itself whenever its stream ends, and goes on after what it was shown last. */
export class ReturningStream implements StreamListener, Disposable {
  readonly #open: StreamOpener;
  readonly #address: Omit<StreamAddress, "since">;
  #stream: MailboxStream | undefined;
  #timer: NodeJS.Timeout | undefined;
  #cursor: string | undefined;
  #isOpen = false;
  #isOver = false;
  #opened = 0;
  #shown = 0;
  #failures = 0;
  #lastFailure: Error | undefined;

  constructor(open: StreamOpener, address: Omit<StreamAddress, "since">) {
    this.#open = open;
    this.#address = address;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** How often it was opened. */
  get opened(): number {
    return this.#opened;
  }

  /** How many messages came, over all its connections. */
  get shown(): number {
    return this.#shown;
  }

  /** Why it was closed last. */
  get lastFailure(): Error | undefined {
    return this.#lastFailure;
  }

  begin(): void {
    this.#stream = this.#open({ ...this.#address, since: this.#cursor }, this);
  }

  onOpen(): void {
    this.#isOpen = true;
    this.#opened += 1;
    this.#failures = 0;
  }

  onMessages(items: readonly InboxItem[], cursor: string): void {
    this.#shown += items.length;
    this.#cursor = cursor;
  }

  onClose(reason: Error): void {
    this.#isOpen = false;
    if (this.#isOver) return;
    this.#lastFailure = reason;
    this.#failures += 1;
    const firstMs = Math.max(FIRST_DELAY_MS, this.#stream?.retryMs ?? 0);
    const delayMs = retryDelayMs(this.#failures, { firstMs, maxMs: DELAY_MS_MAX });
    this.#timer = setTimeout(() => this.begin(), delayMs);
  }

  /** It does not come back from this. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#stream?.[Symbol.dispose]();
  }
}
