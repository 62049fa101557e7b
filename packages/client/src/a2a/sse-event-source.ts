import { type A2aDialect, RelayError } from "@a2a-relay/protocol";
import type { ServerSentEvent } from "../http/sse-parser.ts";
import { SseReader, type SseReaderOptions } from "../http/sse-reader.ts";
import type { A2aHttpStream } from "./a2a-http.ts";
import { readEvent } from "./agent-answer.ts";
import type { A2aEventSource, A2aStreamEvent } from "./stream-event.ts";

/** The data of an event in the agent's dialect. Throws if the event is an error. */
export type ReadData = (event: ServerSentEvent) => unknown;

/** The events of an agent that streams. */
export class SseEventSource implements A2aEventSource {
  readonly #reader: SseReader;
  readonly #url: string;
  readonly #dialect: A2aDialect;
  readonly #readData: ReadData;

  constructor(
    { body, url }: A2aHttpStream,
    dialect: A2aDialect,
    readData: ReadData,
    options: SseReaderOptions,
  ) {
    this.#reader = new SseReader(body, options);
    this.#url = url;
    this.#dialect = dialect;
    this.#readData = readData;
  }

  get retryMs(): number | undefined {
    return this.#reader.retryMs;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const event = await this.#take();
    if (event === undefined) return undefined;
    const data = this.#readData(event);
    return readEvent(this.#dialect, data, { url: this.#url, id: event.id });
  }

  cancel(): void {
    this.#reader.cancel();
  }

  async #take(): Promise<ServerSentEvent | undefined> {
    try {
      return await this.#reader.next();
    } catch (reason) {
      if (!(reason instanceof RelayError)) throw reason;
      if (reason.code !== "too_large") {
        throw new RelayError(reason.code, `${this.#url}: ${reason.message}`, { cause: reason });
      }
      const message = `${this.#url} sends an event that is too large; raise \`answerBytesMax\` if it is right to`;
      throw new RelayError("too_large", message, { cause: reason });
    }
  }
}
