import assert from "node:assert/strict";
import { SseBlocks } from "./sse-blocks.ts";

export interface A2aWireEvent {
  /** Undefined where the relay gave none. */
  readonly id: string | undefined;
  readonly data: unknown;
}

export interface A2aStreamRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** No stream of these tests goes on for so long; one that does is taken for broken. */
const STREAM_MS_MAX = 30_000;

/** Reads an A2A stream from the wire as it is, one event after the other. */
export class A2aEvents implements AsyncDisposable {
  /** Lines that are no part of an event. */
  readonly comments: string[] = [];
  readonly #blocks: SseBlocks;

  private constructor(blocks: SseBlocks) {
    this.#blocks = blocks;
  }

  static async open(url: string, { method, path, body, headers }: A2aStreamRequest): Promise<A2aEvents> {
    const init =
      body === undefined
        ? { method, headers: { ...headers } }
        : {
            method,
            headers: { "content-type": "application/json", ...headers },
            body: JSON.stringify(body),
          };
    return new A2aEvents(await SseBlocks.open(`${url}${path}`, init, STREAM_MS_MAX));
  }

  get response(): Response {
    return this.#blocks.response;
  }

  /** Undefined at the end, which may be a broken connection. */
  async next(): Promise<A2aWireEvent | undefined> {
    for (;;) {
      const block = await this.#blocks.next().catch(() => undefined);
      if (block === undefined) return undefined;
      const event = this.#read(block);
      if (event !== undefined) return event;
    }
  }

  async take(count: number): Promise<readonly A2aWireEvent[]> {
    const events: A2aWireEvent[] = [];
    while (events.length < count) {
      events.push(
        (await this.next()) ?? assert.fail(`the stream ended after ${events.length} of ${count} events`),
      );
    }
    return events;
  }

  async rest(): Promise<readonly A2aWireEvent[]> {
    const events: A2aWireEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event);
    return events;
  }

  /** Breaks the connection. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#blocks[Symbol.asyncDispose]();
  }

  #read(block: string): A2aWireEvent | undefined {
    const lines = block.split("\n");
    this.comments.push(...lines.filter((line) => line.startsWith(":")));
    const valueOf = (name: string): string | undefined =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = valueOf("data");
    return data === undefined ? undefined : { id: valueOf("id"), data: JSON.parse(data) as unknown };
  }
}
