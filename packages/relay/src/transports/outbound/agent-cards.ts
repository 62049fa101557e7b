import {
  CARD_PATHS,
  cardAddresses,
  interfacesOf,
  interfaceWithoutCard,
  isDowngrade,
  LIMITS,
  type OfferedInterface,
  parseCard,
} from "@a2a-relay/protocol";
import type { Clock } from "../../core/ports/clock.ts";
import { RemoteFailure } from "../../core/ports/outbound.ts";
import { type AgentCaller, answeredFailure, statusFailure } from "./agent-caller.ts";
import type { TimedAnswer } from "./outbound-exchange.ts";

interface FetchedAgent {
  readonly at: OfferedInterface;
  /** Undefined when the agent has no card of its own. */
  readonly cardUrl?: string;
  readonly etag?: string | undefined;
}

interface CachedAgent extends FetchedAgent {
  readonly askedAtMs: number;
}

/** A cached card is used so long without asking the agent. */
const FRESH_MS = 5 * 60 * 1_000;
/** Cached agents; the one that was asked longest ago is evicted first. */
const CACHED_MAX = 1_000;

const NOT_MODIFIED = 304;
const TOO_MANY = 429;
const SERVER_ERRORS = 500;

/** A cache of the interfaces of remote agents, read from their cards. */
export class AgentCards {
  readonly #caller: AgentCaller;
  readonly #clock: Clock;
  readonly #cache = new Map<string, CachedAgent>();

  constructor(caller: AgentCaller, clock: Clock) {
    this.#caller = caller;
    this.#clock = clock;
  }

  /** `url` is that of the card, of the folder it is in, or of the interface itself. Throws `RemoteFailure`. */
  async find(url: string, signal: AbortSignal): Promise<OfferedInterface> {
    const cached = this.#cache.get(url);
    if (cached !== undefined && this.#clock.nowMs() - cached.askedAtMs < FRESH_MS) return cached.at;
    if (cached?.cardUrl !== undefined) {
      const answer = await this.#fetch(cached.cardUrl, signal, cached.etag);
      if (answer.status === NOT_MODIFIED) return this.#keep(url, cached);
      const found = readAgent(answer, cached.cardUrl);
      if (found !== undefined) return this.#keep(url, found);
    }
    return this.#keep(url, await this.#search(url, signal));
  }

  forget(url: string): void {
    this.#cache.delete(url);
  }

  /** Replaces a guess by the interface that worked. */
  learn(url: string, at: OfferedInterface): void {
    this.#keep(url, { at });
  }

  async #search(url: string, signal: AbortSignal): Promise<FetchedAgent> {
    for (const cardUrl of new Set([...cardAddresses(url), url])) {
      const found = readAgent(await this.#fetch(cardUrl, signal), cardUrl);
      if (found !== undefined) return found;
    }
    return { at: (await this.#listedByHost(url, signal)) ?? interfaceWithoutCard(url) };
  }

  /** `url` may be that of an interface which the card of its host names. */
  async #listedByHost(url: string, signal: AbortSignal): Promise<OfferedInterface | undefined> {
    const cardUrl = new URL(`/${CARD_PATHS[0]}`, url).href;
    const interfaces = readInterfaces(await this.#fetch(cardUrl, signal), cardUrl);
    return interfaces?.find((one) => one.url === url);
  }

  /** Throws where the answer does not tell whether there is a card. */
  async #fetch(cardUrl: string, signal: AbortSignal, etag?: string): Promise<TimedAnswer> {
    const headers = {
      accept: "application/json",
      "a2a-version": "1.0",
      ...(etag === undefined ? {} : { "if-none-match": etag }),
    };
    const request = { method: "GET", url: cardUrl, headers } as const;
    const answer = await this.#caller.fetch(request, LIMITS.remoteCardBytesMax, signal).catch(throwUnsent);
    if (answer.status >= SERVER_ERRORS || answer.status === TOO_MANY) throwUnsent(statusFailure(answer));
    return answer;
  }

  #keep(url: string, found: FetchedAgent): OfferedInterface {
    this.#cache.delete(url);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= CACHED_MAX && oldest !== undefined) this.#cache.delete(oldest);
    this.#cache.set(url, { ...found, askedAtMs: this.#clock.nowMs() });
    return found.at;
  }
}

/** Fetching a card sends no message, so its failure is never `unknown`. */
function throwUnsent(reason: unknown): never {
  if (!(reason instanceof RemoteFailure) || reason.kind === "stopped") throw reason;
  const { recorded, retryAfterMs } = reason;
  throw new RemoteFailure("failed", `its card: ${reason.reason}`, { recorded, retryAfterMs, cause: reason });
}

function readAgent(answer: TimedAnswer, cardUrl: string): FetchedAgent | undefined {
  const interfaces = readInterfaces(answer, cardUrl);
  if (interfaces === undefined) return undefined;
  const [at] = interfaces;
  if (at !== undefined) return { at, cardUrl, etag: answer.headers["etag"] };
  const reason =
    "its card offers neither JSON-RPC nor HTTP+JSON in a version that the relay speaks, at a safe address";
  throw answeredFailure("refused", reason, answer);
}

function readInterfaces(answer: TimedAnswer, cardUrl: string): readonly OfferedInterface[] | undefined {
  const card = answer.status === 200 ? parseCard(answer.text) : undefined;
  if (card === undefined) return undefined;
  return interfacesOf(card, cardUrl).filter((one) => !isDowngrade(one, cardUrl));
}
