import { LIMITS } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { OutboundAnswer } from "../ports/outbound-http.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";
import { type RemoteCalls, RemoteFailure, statusFailure } from "./remote-calls.ts";
import { guessedInterface, interfacesOf, isCard, parseMembers } from "./remote-interface.ts";

/** The interface to call, and whether it is a guess because the agent has no card. */
export interface FoundInterface {
  readonly at: RemoteInterface;
  readonly isGuessed: boolean;
}

interface CachedAgent extends FoundInterface {
  readonly cardUrl: string | undefined;
  readonly etag: string | undefined;
  readonly askedAtMs: number;
}

type FetchedAgent = Omit<CachedAgent, "askedAtMs">;

/** A cached card is used so long without asking the agent. */
const FRESH_MS = 5 * 60 * 1_000;
/** Cached agents; the one that was asked longest ago is evicted first. */
const CACHED_MAX = 1_000;

const WELL_KNOWN = [".well-known/agent-card.json", ".well-known/agent.json"];
const SERVER_ERRORS = 500;
const TOO_MANY = 429;

/** A cache of the interfaces of remote agents, read from their cards. */
export class RemoteCards {
  readonly #calls: RemoteCalls;
  readonly #clock: Clock;
  readonly #cache = new Map<string, CachedAgent>();

  constructor(calls: RemoteCalls, clock: Clock) {
    this.#calls = calls;
    this.#clock = clock;
  }

  /** `url` is that of the card, of the folder it is in, or of the interface itself. Throws `RemoteFailure`. */
  async find(url: string, signal: AbortSignal): Promise<FoundInterface> {
    const cached = this.#cache.get(url);
    if (cached !== undefined && this.#clock.nowMs() - cached.askedAtMs < FRESH_MS) return cached;
    if (cached?.cardUrl !== undefined) {
      const answer = await this.#fetch(cached.cardUrl, signal, cached.etag);
      if (answer.status === 304) return this.#keep(url, cached);
      const found = readAgent(answer, cached.cardUrl);
      if (found !== undefined) return this.#keep(url, found);
    }
    return this.#keep(url, await this.#search(url, signal));
  }

  forget(url: string): void {
    this.#cache.delete(url);
  }

  /** Replaces a guess by the interface that worked. */
  learn(url: string, at: RemoteInterface): void {
    this.#keep(url, { at, isGuessed: false, cardUrl: undefined, etag: undefined });
  }

  async #search(url: string, signal: AbortSignal): Promise<FetchedAgent> {
    for (const cardUrl of addressesBelow(url)) {
      const found = readAgent(await this.#fetch(cardUrl, signal), cardUrl);
      if (found !== undefined) return found;
    }
    const own = await this.#listedByHost(url, signal);
    const none = { cardUrl: undefined, etag: undefined };
    return own === undefined
      ? { at: guessedInterface(url), isGuessed: true, ...none }
      : { at: own, isGuessed: false, ...none };
  }

  /** `url` may be that of an interface which the card of its host names. */
  async #listedByHost(url: string, signal: AbortSignal): Promise<RemoteInterface | undefined> {
    const cardUrl = new URL(`/${WELL_KNOWN[0]}`, url).href;
    const interfaces = readInterfaces(await this.#fetch(cardUrl, signal), cardUrl);
    return interfaces?.find((one) => one.url === url);
  }

  /** Throws where the answer does not tell whether there is a card. */
  async #fetch(cardUrl: string, signal: AbortSignal, etag?: string): Promise<OutboundAnswer> {
    const headers = {
      accept: "application/json",
      "a2a-version": "1.0",
      ...(etag === undefined ? {} : { "if-none-match": etag }),
    };
    const request = { method: "GET", url: cardUrl, headers } as const;
    const answer = await this.#calls.fetch(request, LIMITS.remoteCardBytesMax, signal).catch(throwUnsent);
    if (answer.status >= SERVER_ERRORS || answer.status === TOO_MANY) throwUnsent(statusFailure(answer));
    return answer;
  }

  #keep(url: string, found: FetchedAgent): CachedAgent {
    this.#cache.delete(url);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= CACHED_MAX && oldest !== undefined) this.#cache.delete(oldest);
    const cached = { ...found, askedAtMs: this.#clock.nowMs() };
    this.#cache.set(url, cached);
    return cached;
  }
}

/** Fetching a card sends no message, so its failure is never `unknown`. */
function throwUnsent(reason: unknown): never {
  if (!(reason instanceof RemoteFailure) || reason.kind === "stopped") throw reason;
  const { answer, message } = reason;
  throw new RemoteFailure("failed", `its card: ${reason.reason}`, { answer, message, cause: reason });
}

function readAgent(answer: OutboundAnswer, cardUrl: string): FetchedAgent | undefined {
  const interfaces = readInterfaces(answer, cardUrl);
  if (interfaces === undefined) return undefined;
  const [at] = interfaces;
  if (at !== undefined) return { at, isGuessed: false, cardUrl, etag: answer.headers["etag"] };
  const reason =
    "its card offers neither JSON-RPC nor HTTP+JSON in a version that the relay speaks, at a safe address";
  throw new RemoteFailure("refused", reason, { answer });
}

function readInterfaces(answer: OutboundAnswer, cardUrl: string): readonly RemoteInterface[] | undefined {
  const card = answer.status === 200 ? parseMembers(answer.text) : undefined;
  return isCard(card) ? interfacesOf(card, cardUrl) : undefined;
}

/** The address is a folder, with or without a slash at its end, unless it is the card itself. */
function addressesBelow(url: string): readonly string[] {
  const folder = new URL(url);
  folder.search = "";
  if (!folder.pathname.endsWith("/")) folder.pathname += "/";
  const below = WELL_KNOWN.map((path) => new URL(path, folder).href);
  return new URL(url).pathname.endsWith(".json") ? [url, ...below] : [...below, url];
}
