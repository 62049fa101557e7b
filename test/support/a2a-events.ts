import assert from "node:assert/strict";

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
  readonly response: Response;
  /** Lines that are no part of an event. */
  readonly comments: string[] = [];
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

  static async open(url: string, request: A2aStreamRequest): Promise<A2aEvents> {
    const left = new AbortController();
    const { method, path, body, headers } = request;
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        accept: "text/event-stream",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      signal: AbortSignal.any([left.signal, AbortSignal.timeout(STREAM_MS_MAX)]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      assert.fail(`no stream: ${response.status} ${await response.text()}`);
    }
    return new A2aEvents(response, left);
  }

  /** Undefined at the end, which may be a broken connection. */
  async next(): Promise<A2aWireEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end !== -1) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        const event = this.#read(block);
        if (event !== undefined) return event;
        continue;
      }
      const step = await this.#chunks.next().catch(() => ({ done: true, value: undefined }) as const);
      if (step.done === true) return undefined;
      this.#text += this.#decoder.decode(step.value, { stream: true });
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
  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort();
    await this.#chunks.next().catch(() => undefined);
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
