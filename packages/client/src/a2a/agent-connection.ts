import { A2aError, type AgentCard, readCard } from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { FilledA2AClientOptions } from "./a2a-client-options.ts";
import type { A2aHttp } from "./a2a-http.ts";
import { asObject } from "../http/http-answer.ts";
import type { AgentBinding } from "./agent-binding.ts";
import { type AgentInterface, chooseInterface } from "./agent-interface.ts";
import { CardSource, NoCardFound } from "./card-source.ts";
import { JsonRpcBinding } from "./json-rpc-binding.ts";
import { RestBinding } from "./rest-binding.ts";

interface Chosen {
  readonly interface: AgentInterface;
  readonly binding: AgentBinding;
  /** Undefined when the agent has no card. */
  readonly card: AgentCard | undefined;
}

/** The card and the binding of an agent, loaded on first use. */
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

  /** The current card. */
  async refreshCard(options: CallOptions): Promise<AgentCard> {
    const { card } = this.#options;
    if (card !== undefined) return readCard(card);
    const found = await this.#find(options);
    if (found.card !== this.#chosen?.card) this.#chosen = undefined;
    return found.card;
  }

  /** True without a card: the agent may refuse. */
  async canStream(options: CallOptions): Promise<boolean> {
    const { card } = await this.#choose(options);
    return card === undefined || asObject(card["capabilities"])?.["streaming"] === true;
  }

  /** If the version was guessed and the agent does not know the method, repeats the call in 0.1. */
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
    // Unreachable: without an address the options have a card.
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
