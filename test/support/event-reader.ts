import assert from "node:assert/strict";

export interface ReceivedEvent<Data = unknown> {
  readonly id: string;
  readonly event: string;
  readonly data: Data;
}

/** A heartbeat is a comment; the end of the stream is undefined. */
export type Received<Data> = ReceivedEvent<Data> | "heartbeat" | undefined;

/** Reads server-sent events, one after the other, as they come. */
export class EventReader<Data = unknown> implements AsyncDisposable {
  readonly response: Response;
  /** What the relay said about coming back. */
  retryMs: number | undefined;
  readonly #left: AbortController;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  private constructor(response: Response, left: AbortController) {
    assert.ok(response.body, "there is nothing to read");
    this.response = response;
    this.#left = left;
    this.#chunks = response.body[Symbol.asyncIterator]();
  }

  static async open<Data = unknown>(
    url: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<EventReader<Data>> {
    const left = new AbortController();
    const accept = "text/event-stream";
    const response = await fetch(url, { headers: { accept, ...headers }, signal: left.signal });
    const type = response.headers.get("content-type");
    if (type !== "text/event-stream; charset=utf-8")
      assert.fail(`${response.status} ${await response.text()}`);
    return new EventReader<Data>(response, left);
  }

  async next(): Promise<Received<Data>> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end !== -1) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        const received = this.#read(block);
        if (received !== undefined) return received;
        continue;
      }
      const step = await this.#chunks.next();
      if (step.done === true) return undefined;
      this.#text += this.#decoder.decode(step.value, { stream: true });
    }
  }

  /** The next event, after any heartbeats. */
  async event(): Promise<ReceivedEvent<Data>> {
    for (;;) {
      const received = await this.next();
      assert.ok(received !== undefined, "the stream ended before an event came");
      if (received !== "heartbeat") return received;
    }
  }

  async take(count: number): Promise<readonly ReceivedEvent<Data>[]> {
    const events: ReceivedEvent<Data>[] = [];
    while (events.length < count) events.push(await this.event());
    return events;
  }

  /** All events to the end, which may be a broken connection. */
  async rest(): Promise<readonly ReceivedEvent<Data>[]> {
    const events: ReceivedEvent<Data>[] = [];
    for (;;) {
      const received = await this.next().catch(() => undefined);
      if (received === undefined) return events;
      if (received !== "heartbeat") events.push(received);
    }
  }

  /** Breaks the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort();
    await this.#chunks.next().catch(() => undefined);
  }

  #read(block: string): Received<Data> {
    if (block.startsWith(":")) return "heartbeat";
    const fields = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
    const retry = fields.get("retry");
    if (retry !== undefined) this.retryMs = Number(retry);
    const [id, event, data] = ["id", "event", "data"].map((name) => fields.get(name));
    if (id === undefined || event === undefined || data === undefined) return undefined;
    return { id, event, data: JSON.parse(data) as Data };
  }
}
