import {
  A2A_BINDINGS,
  A2A_VERSIONS,
  type AgentCard,
  callableUrl,
  interfacesOf,
  isDowngrade,
  isUnknownMethod,
  type OfferedInterface,
  quote,
  readCard,
  RelayError,
} from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { FilledA2AClientOptions } from "./a2a-client-options.ts";
import type { A2aHttp } from "./a2a-http.ts";
import { asObject } from "../http/http-answer.ts";
import { AgentBinding } from "./agent-binding.ts";
import { CardSource, NoCardFound } from "./card-source.ts";

type Wishes = Pick<FilledA2AClientOptions, "binding" | "dialect" | "headers">;

interface Chosen {
  readonly interface: OfferedInterface;
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

  /** If the card names no version and the agent does not know the method, repeats the call in the other dialect. */
  async use<T>(call: (binding: AgentBinding) => Promise<T>, options: CallOptions): Promise<T> {
    const chosen = await this.#choose(options);
    try {
      return await call(chosen.binding);
    } catch (reason) {
      const { otherDialect, ...known } = chosen.interface;
      if (otherDialect === undefined || !isUnknownMethod(reason)) throw reason;
      const other = this.#bind({ ...known, dialect: otherDialect }, chosen.card);
      const result = await call(other.binding);
      this.#chosen = other;
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
      const { url, dialect, binding = "JSONRPC" } = this.#options;
      if (!(reason instanceof NoCardFound) || url === undefined || dialect === undefined) throw reason;
      return this.#bind({ url, binding, dialect, a2aTenant: null }, undefined);
    }
  }

  #find(options: CallOptions): ReturnType<CardSource["get"]> {
    // Unreachable: without an address the options have a card.
    if (this.#cards === undefined) throw new NoCardFound([], []);
    return this.#cards.get(options);
  }

  #bind(agentInterface: OfferedInterface, card: AgentCard | undefined): Chosen {
    const { idleMs, answerBytesMax: charsMax } = this.#options;
    const binding = new AgentBinding(this.#http, agentInterface, { idleMs, charsMax });
    return { interface: agentInterface, binding, card };
  }
}

/** The best interface that fits the wishes. */
export function chooseInterface(card: AgentCard, wishes: Wishes, cardUrl?: string): OfferedInterface {
  const { binding, dialect, headers } = wishes;
  const best = interfacesOf(card, cardUrl)
    .filter((one) => binding === undefined || one.binding === binding)
    .find((one) => dialect === undefined || one.otherDialect !== undefined || one.dialect === dialect);
  if (best === undefined) throw noInterface(card, wishes, cardUrl);
  if (isDowngrade(best, cardUrl) && Object.keys(headers).length > 0) {
    const advice = "give that card as `card` if this is meant";
    const what = `the card at ${cardUrl} sends your credentials to ${best.url}, over an open line`;
    throw new RelayError("permission_denied", `${what}; ${advice}`);
  }
  if (dialect === undefined) return best;
  const { otherDialect: _, ...known } = best;
  return { ...known, dialect };
}

function noInterface(card: AgentCard, { binding, dialect }: Wishes, cardUrl?: string): RelayError {
  const { name, supportedInterfaces } = readCard(card);
  const offered = (Array.isArray(supportedInterfaces) ? (supportedInterfaces as readonly unknown[]) : []).map(
    (one) => {
      const { url, protocolBinding, protocolVersion } = asObject(one) ?? {};
      const isKnown = A2A_BINDINGS.some((known) => known === protocolBinding);
      const isBad = isKnown && callableUrl(url, cardUrl) === undefined;
      // The error does not show the address: it may hold a password.
      const where = isBad ? " at an address that cannot be called" : "";
      return `${String(protocolBinding)} ${String(protocolVersion)}${where}`;
    },
  );
  const wanted = `${binding ?? A2A_BINDINGS.join(" or ")} of A2A ${dialect ?? A2A_VERSIONS.join(", ")}`;
  const what = `the card of ${quote(name)} offers ${offered.join(", ") || "no interface"}`;
  return new RelayError("invalid_argument", `${what}; this client wants ${wanted}`);
}
