import assert from "node:assert/strict";
import { SseBlocks } from "./sse-blocks.ts";

export interface ReceivedEvent<Data = unknown> {
  readonly id: string;
  readonly event: string;
  readonly data: Data;
}

/** A heartbeat is a comment; the end of the stream is undefined. */
export type Received<Data> = ReceivedEvent<Data> | "heartbeat" | undefined;

/** Reads server-sent events, one after the other, as they come. */
export class EventReader<Data = unknown> implements AsyncDisposable {
  /** What the relay said about coming back. */
  retryMs: number | undefined;
  readonly #blocks: SseBlocks;

  private constructor(blocks: SseBlocks) {
    this.#blocks = blocks;
  }

  static async open<Data = unknown>(
    url: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<EventReader<Data>> {
    const blocks = await SseBlocks.open(url, { headers });
    assert.equal(blocks.response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    return new EventReader<Data>(blocks);
  }

  get response(): Response {
    return this.#blocks.response;
  }

  async next(): Promise<Received<Data>> {
    for (;;) {
      const block = await this.#blocks.next();
      if (block === undefined) return undefined;
      const received = this.#read(block);
      if (received !== undefined) return received;
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
  [Symbol.asyncDispose](): Promise<void> {
    return this.#blocks[Symbol.asyncDispose]();
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
