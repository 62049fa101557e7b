import { A2aError, type AgentCard, readCard } from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { FilledA2AClientOptions } from "./a2a-client-options.ts";
import type { A2aHttp } from "./a2a-http.ts";
import { asObject } from "./agent-answer.ts";
import type { AgentBinding } from "./agent-binding.ts";
import { type AgentInterface, chooseInterface } from "./agent-interface.ts";
import { CardSource, NoCardFound } from "./card-source.ts";
import { JsonRpcBinding } from "./json-rpc-binding.ts";
import { RestBinding } from "./rest-binding.ts";

interface Chosen {
  readonly interface: AgentInterface;
  readonly binding: AgentBinding;
  /** Undefined where there is no card. */
  readonly card: AgentCard | undefined;
}

/** What is known of an agent, and how it is spoken to; learned when it is first needed. */
export class AgentConnection {
  readonly #options: FilledA2AClientOptions;
  readonly #http: A2aHttp;
  readonly #cards: CardSource | undefined;
  #chosen: Chosen | undefined;

  constructor(options: FilledA2AClientOptions, http: A2aHttp) {
    this.#options = options;
    this.#http = http;
    this.#cards = options.url === undefined ? undefined : new CardSource(http, options.url);
  }

  /** The card as it is now. */
  async refreshCard(options: CallOptions): Promise<AgentCard> {
    const { card } = this.#options;
    if (card !== undefined) return readCard(card);
    const found = await this.#find(options);
    if (found.card !== this.#chosen?.card) this.#chosen = undefined;
    return found.card;
  }

  /** An agent without a card is asked and may refuse. */
  async canStream(options: CallOptions): Promise<boolean> {
    const { card } = await this.#choose(options);
    return card === undefined || asObject(card["capabilities"])?.["streaming"] === true;
  }

  /** Where the version was guessed and proves wrong, which the first answer tells, the call is made once more. */
  async use<T>(call: (binding: AgentBinding) => Promise<T>, options: CallOptions): Promise<T> {
    const chosen = await this.#choose(options);
    try {
      return await call(chosen.binding);
    } catch (reason) {
      if (!chosen.interface.isGuessed || !isNoMethod(reason)) throw reason;
      const older = this.#bind({ ...chosen.interface, version: "0.1", isGuessed: false }, chosen.card);
      const result = await call(older.binding);
      this.#chosen = older;
      return result;
    }
  }

  async #choose(options: CallOptions): Promise<Chosen> {
    this.#chosen ??= await this.#connect(options);
    return this.#chosen;
  }

  async #connect(options: CallOptions): Promise<Chosen> {
    const given = this.#options.card;
    if (given !== undefined) return this.#bind(chooseInterface(given, this.#options), readCard(given));
    try {
      const { card, written, url } = await this.#find(options);
      return this.#bind(chooseInterface(written, this.#options, url), card);
    } catch (reason) {
      const { url, dialect: version, binding = "JSONRPC" } = this.#options;
      if (!(reason instanceof NoCardFound) || url === undefined || version === undefined) throw reason;
      return this.#bind({ url, binding, version, tenant: undefined, isGuessed: false }, undefined);
    }
  }

  #find(options: CallOptions): ReturnType<CardSource["get"]> {
    // Without an address there is a card, and then nobody asks for one.
    if (this.#cards === undefined) throw new NoCardFound([], []);
    return this.#cards.get(options);
  }

  #bind(agentInterface: AgentInterface, card: AgentCard | undefined): Chosen {
    const { idleMs, answerBytesMax: charsMax } = this.#options;
    const Binding = agentInterface.binding === "JSONRPC" ? JsonRpcBinding : RestBinding;
    const binding = new Binding(this.#http, agentInterface, { idleMs, charsMax });
    return { interface: agentInterface, binding, card };
  }
}

function isNoMethod(reason: unknown): boolean {
  return reason instanceof A2aError && reason.a2a === "MethodNotFound";
}
