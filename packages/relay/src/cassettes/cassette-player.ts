import { createContext, Script } from "node:vm";
import { type Message, RelayError } from "@a2a-relay/protocol";
import { type Cassette, type Exchange, type Step, CASSETTE_LIMITS, type MessageMatch } from "./cassette.ts";

/** The answer to a message. */
export interface Cue {
  /** Undefined when no exchange matches; the steps are then those of `otherwise`. */
  readonly exchange: Exchange | undefined;
  readonly steps: readonly Step[];
}

/** The answers of the last messages are kept, for redeliveries. */
const CUES_MAX = 10_000;

/** Chooses the exchange that answers a message. No I/O, no time: the same messages get the same answers. */
export class CassettePlayer {
  readonly #cassette: Cassette;
  /** How often each exchange was chosen. */
  readonly #plays: number[];
  readonly #matchKeys: readonly string[];
  readonly #cues = new Map<string, Cue>();

  constructor(cassette: Cassette) {
    this.#cassette = cassette;
    this.#plays = cassette.exchanges.map(() => 0);
    this.#matchKeys = cassette.exchanges.map(({ match }) =>
      JSON.stringify(Object.values({ ...match, regex: match.regex?.source ?? null })),
    );
  }

  /** True once every exchange was chosen. */
  get isThrough(): boolean {
    return this.#plays.every((plays) => plays > 0);
  }

  /** `key` names the message or its task: a redelivery gets the same answer and does not count as a play. */
  choose(key: string, message: MatchedMessage): Cue {
    const known = this.#cues.get(key);
    if (known !== undefined) return known;
    const index = this.#pick(message);
    const exchange = index === undefined ? undefined : this.#cassette.exchanges[index];
    if (index !== undefined) this.#plays[index] = this.#playsOf(index) + 1;
    const cue = { exchange, steps: exchange?.steps ?? this.#cassette.otherwise };
    this.#cues.set(key, cue);
    const [oldest] = this.#cues.keys();
    if (this.#cues.size > CUES_MAX && oldest !== undefined) this.#cues.delete(oldest);
    return cue;
  }

  #pick(message: MatchedMessage): number | undefined {
    const { exchanges, mode } = this.#cassette;
    if (mode === "ordered") {
      const next = this.#plays.indexOf(0);
      const exchange = exchanges[next];
      return exchange !== undefined && matches(exchange.match, message) ? next : undefined;
    }
    const isFree = (index: number): boolean => mode === "loop" || this.#playsOf(index) === 0;
    const first = exchanges.findIndex(({ match }, index) => isFree(index) && matches(match, message));
    return first === -1 ? undefined : this.#nextOfAlike(first);
  }

  /** Exchanges with an equal match alternate; one with another match does not come between them. */
  #nextOfAlike(first: number): number {
    const alike = [...this.#matchKeys.keys()].filter(
      (index) => index >= first && this.#matchKeys[index] === this.#matchKeys[first],
    );
    const fewest = Math.min(...alike.map((index) => this.#playsOf(index)));
    return alike.find((index) => this.#playsOf(index) === fewest) ?? first;
  }

  #playsOf(index: number): number {
    return this.#plays[index] ?? 0;
  }
}

/** The members of a message that a match can use. */
export type MatchedMessage = Pick<Message, "type" | "from" | "subject" | "body">;

export function matches(match: MessageMatch, message: MatchedMessage): boolean {
  const { kinds, text, contains, regex, from, subject } = match;
  if (!kinds.includes(message.type)) return false;
  if (text !== undefined && text.trim() !== message.body.trim()) return false;
  if (contains !== undefined && !message.body.includes(contains)) return false;
  if (from !== undefined && from !== message.from) return false;
  if (subject !== undefined && subject !== message.subject) return false;
  return regex === undefined || isFound(regex, message.body);
}

/** A separate context, because only `vm` can stop a running match. */
let matcher: ((regex: RegExp, text: string) => unknown) | undefined;

/** A pattern may backtrack for ever, and other agents write the messages. */
function isFound(regex: RegExp, text: string): boolean {
  matcher ??= createMatcher();
  try {
    return matcher(regex, text) === true;
  } catch (cause) {
    if (!isTimeout(cause)) throw cause;
    throw new RelayError(
      "invalid_argument",
      `the regex ${regex.source} took over ${CASSETTE_LIMITS.regexMsMax} ms on a message; write a simpler one`,
    );
  }
}

function createMatcher(): (regex: RegExp, text: string) => unknown {
  const context = createContext(Object.create(null) as object) as { regex?: RegExp; text?: string };
  const script = new Script("regex.test(text)");
  return (regex, text) => {
    Object.assign(context, { regex, text });
    const found: unknown = script.runInContext(context, { timeout: CASSETTE_LIMITS.regexMsMax });
    return found;
  };
}

/** Errors of another context are not instances of our Error. */
function isTimeout(cause: unknown): boolean {
  return (
    typeof cause === "object" &&
    cause !== null &&
    "code" in cause &&
    cause.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
