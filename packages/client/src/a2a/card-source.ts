import { type AgentCard, cardAddresses, parseCard, readCard, RelayError } from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { A2aHttp } from "./a2a-http.ts";
import { foreignAnswer, isRefusedForGood } from "./agent-answer.ts";

export interface FoundCard {
  /** Converted to 1.0. */
  readonly card: AgentCard;
  /** As the agent wrote it; it tells the agent's version. */
  readonly written: AgentCard;
  readonly url: string;
}

/** Loads the card of an agent, and caches it with its ETag. */
export class CardSource {
  readonly #http: A2aHttp;
  readonly #addresses: readonly string[];
  #found: FoundCard | undefined;
  #etag: string | undefined;

  constructor(http: A2aHttp, url: string) {
    this.#http = http;
    this.#addresses = cardAddresses(url);
  }

  async get(options: CallOptions): Promise<FoundCard> {
    const addresses = this.#found === undefined ? this.#addresses : [this.#found.url];
    const failures: RelayError[] = [];
    for (const address of addresses) {
      const found = await this.#ask(address, options);
      if (!(found instanceof RelayError)) return found;
      failures.push(found);
    }
    const [first] = failures;
    if (first !== undefined && addresses.length === 1) throw first;
    throw new NoCardFound(addresses, failures);
  }

  async #ask(address: string, options: CallOptions): Promise<FoundCard | RelayError> {
    const headers = {
      accept: "application/json",
      "a2a-version": "1.0",
      ...(this.#etag === undefined ? {} : { "if-none-match": this.#etag }),
    };
    const request = { method: "GET", url: address, headers, isRepeatable: true } as const;
    // With our own ETag, `fetch` accepts a 304 only in this mode.
    const answer = await this.#http.ask({ ...request, cache: "no-cache" }, options);
    if (answer.status === 304 && this.#found !== undefined) return this.#found;
    const written = answer.status === 200 ? parseCard(answer.text) : undefined;
    if (written === undefined) {
      const error = foreignAnswer(answer, "instead of an agent card");
      if (isRefusedForGood(answer.status)) throw error;
      return error;
    }
    this.#found = { card: readCard(written), written, url: answer.url };
    this.#etag = answer.headers.get("etag") ?? undefined;
    return this.#found;
  }
}

/** A caller that gives the `dialect` needs no card. */
export class NoCardFound extends RelayError {
  constructor(addresses: readonly string[], failures: readonly RelayError[]) {
    const advice =
      "give the address of the card, or, if the address is the endpoint itself, the `dialect` that it speaks";
    super("not_found", `no agent card at ${addresses.join(" or ")}; ${advice}`, { cause: failures[0] });
  }
}
