import type { Cassette, Exchange, Step } from "./cassette.ts";
import { matches, type MatchedMessage } from "./message-match.ts";

/** What a message is answered with. */
export interface Cue {
  /** Undefined when no exchange matches; the steps are then those of `otherwise`. */
  readonly exchange: Exchange | undefined;
  readonly steps: readonly Step[];
}

/** Of so many messages the player remembers what they were answered with. */
const REMEMBERED_MAX = 10_000;

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

  /** `key` names the message or its task: one that comes again gets the same answer and uses nothing up. */
  choose(key: string, message: MatchedMessage): Cue {
    const known = this.#cues.get(key);
    if (known !== undefined) return known;
    const index = this.#pick(message);
    const exchange = index === undefined ? undefined : this.#cassette.exchanges[index];
    if (index !== undefined) this.#plays[index] = this.#playsOf(index) + 1;
    const cue = { exchange, steps: exchange?.steps ?? this.#cassette.otherwise };
    this.#cues.set(key, cue);
    const [oldest] = this.#cues.keys();
    if (this.#cues.size > REMEMBERED_MAX && oldest !== undefined) this.#cues.delete(oldest);
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

  /** Exchanges for the very same messages take turns; one for other messages as well does not come in between. */
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
