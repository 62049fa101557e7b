import { setTimeout as sleep } from "node:timers/promises";
import { ReturningStream } from "./returning-stream.ts";
import type { StreamAddress, StreamOpener } from "./mailbox-stream.ts";

/** Not all at once: a server takes in only so many that it has not accepted yet. */
const OPENING_MAX = 200;
const POLL_MS = 5;
const PATIENCE_MS = 120_000;

/** Many readers that come back by themselves. */
export class ReturningStreams implements Disposable {
  readonly #streams: readonly ReturningStream[];

  private constructor(streams: readonly ReturningStream[]) {
    this.#streams = streams;
  }

  static async open(
    open: StreamOpener,
    addresses: readonly Omit<StreamAddress, "since">[],
  ): Promise<ReturningStreams> {
    const all = new ReturningStreams(addresses.map((address) => new ReturningStream(open, address)));
    for (const [index, stream] of all.#streams.entries()) {
      if (index % OPENING_MAX === 0) await all.#until("opened", index, ({ isOpen }) => isOpen);
      stream.begin();
    }
    await all.areOpen(1);
    return all;
  }

  /** Resolves when so large a share of them is open, each for at least so many times. */
  areOpen(times: number, share = 1): Promise<void> {
    const wanted = Math.ceil(this.#streams.length * share);
    return this.#until("opened", wanted, ({ isOpen, opened }) => isOpen && opened >= times);
  }

  /** Resolves when every one was shown so many messages; rejects if one was shown more. */
  async wereShown(messages: number): Promise<void> {
    await this.#until(`got ${messages} messages`, this.#streams.length, ({ shown }) => shown >= messages);
    const repeated = this.#streams.filter(({ shown }) => shown > messages).length;
    if (repeated > 0) throw new Error(`${repeated} streams were shown more than ${messages} messages`);
  }

  [Symbol.dispose](): void {
    for (const stream of this.#streams) stream[Symbol.dispose]();
  }

  async #until(what: string, wanted: number, isSo: (stream: ReturningStream) => boolean): Promise<void> {
    const lastMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const count = this.#streams.filter(isSo).length;
      if (count >= wanted) return;
      if (performance.now() > lastMs) {
        const failure = this.#streams.findLast((stream) => !isSo(stream) && stream.lastFailure !== undefined);
        const why = failure?.lastFailure?.message ?? "nothing failed";
        throw new Error(`of ${wanted} streams ${count} ${what} in time: ${why}`);
      }
      await sleep(POLL_MS);
    }
  }
}
