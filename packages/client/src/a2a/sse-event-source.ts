import { type AgentInterface, readA2aEvent, RelayError } from "@a2a-relay/protocol";
import type { ServerSentEvent } from "../http/sse-parser.ts";
import { SseReader, type SseReaderOptions } from "../http/sse-reader.ts";
import type { A2aHttpStream } from "./a2a-http.ts";
import { valueOf } from "./agent-answer.ts";
import type { A2aEventSource, A2aStreamEvent } from "./stream-event.ts";

/** The events of an agent that streams. */
export class SseEventSource implements A2aEventSource {
  readonly #reader: SseReader;
  readonly #url: string;
  readonly #interface: AgentInterface;

  constructor({ body, url }: A2aHttpStream, agentInterface: AgentInterface, options: SseReaderOptions) {
    this.#reader = new SseReader(body, options);
    this.#url = url;
    this.#interface = agentInterface;
  }

  get retryMs(): number | undefined {
    return this.#reader.retryMs;
  }

  async next(): Promise<A2aStreamEvent | undefined> {
    const sent = await this.#take();
    if (sent === undefined) return undefined;
    const { event } = valueOf(readA2aEvent(this.#interface, sent), this.#url);
    return sent.id === "" ? event : { ...event, eventId: sent.id };
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
