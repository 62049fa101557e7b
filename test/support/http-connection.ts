import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";

/** Nothing these tests ask takes this long. */
const ANSWER_MS_MAX = 30_000;
const SOCKETS_MAX = 32;

/** Undefined when the connection broke before the whole answer was there. */
export type Answer = { readonly status: number; readonly body: unknown } | undefined;

/** Calls a relay and never tries again: what broke is for the history to tell. */
export interface Connection {
  /** A call was not answered. */
  readonly broken: boolean;
  call(method: "GET" | "POST", path: string, content?: unknown): Promise<Answer>;
}

/** Plain HTTP over connections that stay open. */
export class HttpConnection implements Connection, Disposable {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX });
  readonly #onAnswer: () => void;
  #broken = false;

  constructor(url: string, onAnswer: () => void = () => undefined) {
    this.#url = url;
    this.#onAnswer = onAnswer;
  }

  get broken(): boolean {
    return this.#broken;
  }

  async call(method: "GET" | "POST", path: string, content?: unknown): Promise<Answer> {
    const late = AbortSignal.timeout(ANSWER_MS_MAX);
    try {
      const answer = await this.#exchange(method, path, content, late);
      this.#onAnswer();
      return answer;
    } catch (reason) {
      if (late.aborted) throw new Error(`${method} ${path} was not answered`, { cause: reason });
      this.#broken = true;
      return undefined;
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #exchange(
    method: string,
    path: string,
    content: unknown,
    signal: AbortSignal,
  ): Promise<NonNullable<Answer>> {
    const text = content === undefined ? undefined : JSON.stringify(content);
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(
        `${this.#url}${path}`,
        {
          method,
          agent: this.#agent,
          signal,
          headers: text === undefined ? {} : { "content-type": "application/json" },
        },
        resolve,
      );
      outgoing.on("error", reject);
      outgoing.end(text);
    });
    const body: unknown = await json(incoming);
    return { status: incoming.statusCode ?? 0, body };
  }
}
