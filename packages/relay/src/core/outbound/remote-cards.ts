import { LIMITS } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { OutboundAnswer } from "../ports/outbound-http.ts";
import { parseMembers, type RemoteCalls, RemoteFailure, statusFailure } from "./remote-calls.ts";
import { guessedInterface, interfacesOf, isCard } from "./remote-interface.ts";
import type { RemoteInterface } from "../ports/remote-tasks.ts";

/** Where an agent is, and whether its card says so. */
export interface FoundAgent {
  readonly at: RemoteInterface;
  readonly isGuessed: boolean;
}

interface Known extends FoundAgent {
  readonly cardUrl: string | undefined;
  readonly etag: string | undefined;
  readonly askedAtMs: number;
}

/** For so long nobody asks whether a card has changed. */
const FRESH_MS = 5 * 60 * 1_000;
/** Agents whose cards are remembered; the one that was asked longest ago makes room. */
const KNOWN_MAX = 1_000;

const WELL_KNOWN = [".well-known/agent-card.json", ".well-known/agent.json"];
const SERVER_ERRORS = 500;
const TOO_MANY = 429;

/** Finds out how an agent elsewhere wants to be asked: from its card, wherever below its address that is. */
export class RemoteCards {
  readonly #calls: RemoteCalls;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(calls: RemoteCalls, clock: Clock) {
    this.#calls = calls;
    this.#clock = clock;
  }

  /** `url` is that of the card, of the folder it is in, or of the interface itself. Throws `RemoteFailure`. */
  async find(url: string, signal: AbortSignal): Promise<FoundAgent> {
    const known = this.#known.get(url);
    if (known !== undefined && this.#clock.nowMs() - known.askedAtMs < FRESH_MS) return known;
    if (known?.cardUrl !== undefined) {
      const answer = await this.#fetch(known.cardUrl, signal, known.etag);
      if (answer.status === 304) return this.#remember(url, known);
      const found = readAgent(answer, known.cardUrl);
      if (found !== undefined) return this.#remember(url, found);
    }
    return this.#remember(url, await this.#search(url, signal));
  }

  /** What was found does not hold any more. */
  forget(url: string): void {
    this.#known.delete(url);
  }

  /** What a guess has come to. */
  learn(url: string, at: RemoteInterface): void {
    this.#remember(url, { at, isGuessed: false, cardUrl: undefined, etag: undefined });
  }

  async #search(url: string, signal: AbortSignal): Promise<Omit<Known, "askedAtMs">> {
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

  /** The address of an interface may be all that somebody knows; the card of its host may name it. */
  async #listedByHost(url: string, signal: AbortSignal): Promise<RemoteInterface | undefined> {
    const cardUrl = new URL(`/${WELL_KNOWN[0]}`, url).href;
    const interfaces = readCards(await this.#fetch(cardUrl, signal), cardUrl);
    return interfaces?.find((one) => one.url === url);
  }

  /** An agent that is ill says nothing of where its card is. */
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

  #remember(url: string, found: Omit<Known, "askedAtMs">): Known {
    this.#known.delete(url);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
    const known = { ...found, askedAtMs: this.#clock.nowMs() };
    this.#known.set(url, known);
    return known;
  }
}

/** Whatever becomes of a look at a card, no message has gone out. */
function throwUnsent(reason: unknown): never {
  if (!(reason instanceof RemoteFailure) || reason.kind === "stopped") throw reason;
  const { answer, message } = reason;
  throw new RemoteFailure("failed", `its card: ${reason.reason}`, { answer, message, cause: reason });
}

function readAgent(answer: OutboundAnswer, cardUrl: string): Omit<Known, "askedAtMs"> | undefined {
  const interfaces = readCards(answer, cardUrl);
  if (interfaces === undefined) return undefined;
  const [at] = interfaces;
  if (at !== undefined) return { at, isGuessed: false, cardUrl, etag: answer.headers["etag"] };
  const reason =
    "its card offers neither JSON-RPC nor HTTP+JSON in a version that the relay speaks, at a safe address";
  throw new RemoteFailure("refused", reason, { answer });
}

function readCards(answer: OutboundAnswer, cardUrl: string): readonly RemoteInterface[] | undefined {
  const card = answer.status === 200 ? parseMembers(answer.text) : undefined;
  return isCard(card) ? interfacesOf(card, cardUrl) : undefined;
}

/** The address is a folder whether or not a slash says so, unless it is the card itself. */
function addressesBelow(url: string): readonly string[] {
  const folder = new URL(url);
  folder.search = "";
  if (!folder.pathname.endsWith("/")) folder.pathname += "/";
  const below = WELL_KNOWN.map((path) => new URL(path, folder).href);
  return new URL(url).pathname.endsWith(".json") ? [url, ...below] : [...below, url];
}
