/** Reads a stream to its end and keeps everything it read. */
export class Follower<Item> implements AsyncDisposable {
  readonly seen: Item[] = [];
  /** Resolves when the stream is over: to why it broke off, or to undefined. */
  readonly ended: Promise<unknown>;
  readonly #left = new AbortController();
  #onChange: () => void = () => undefined;
  #isOver = false;

  constructor(follow: (options: { readonly signal: AbortSignal }) => AsyncIterable<Item>) {
    this.ended = this.#run(follow(this.#left)).finally(() => {
      this.#isOver = true;
      this.#onChange();
    });
  }

  /** All that was seen, once there is so much of it. */
  async sees(count: number, withinMs: number): Promise<readonly Item[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Item[]>();
    const complain = (why: string): void => reject(new Error(`${why}; ${this.seen.length} of ${count} came`));
    const check = (): void => {
      if (this.seen.length >= count) resolve(this.seen);
      else if (this.#isOver) this.ended.then((reason) => complain(`it ended: ${String(reason)}`), reject);
    };
    const timer = setTimeout(() => complain(`it took more than ${withinMs} ms`), withinMs);
    this.#onChange = check;
    check();
    return promise.finally(() => clearTimeout(timer));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort();
    await this.ended;
  }

  async #run(items: AsyncIterable<Item>): Promise<unknown> {
    try {
      for await (const item of items) {
        this.seen.push(item);
        this.#onChange();
      }
      return undefined;
    } catch (reason) {
      return reason;
    }
  }
}
