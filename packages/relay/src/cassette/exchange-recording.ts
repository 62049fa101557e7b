import type { Artifact, Message, Part, TaskView } from "@a2a-relay/protocol";
import { CASSETTE_LIMITS, WORK_KINDS } from "./cassette.ts";

/** An exchange as it is written into a cassette: plain data with the members that the guide names. */
export interface WrittenExchange {
  readonly match: Readonly<Record<string, unknown>>;
  readonly reply: readonly WrittenStep[];
}

export type WrittenStep = Readonly<Record<string, unknown>>;

/** What a real agent's turn came to. */
export interface Result {
  readonly state: TaskView["state"];
  readonly text: string;
  readonly parts: readonly Part[] | undefined;
  readonly isPartial: boolean;
}

interface WrittenArtifact {
  readonly name?: string;
  readonly description?: string;
  readonly chunks: (readonly Part[])[];
}

/** Shorter pauses are the network's, not the agent's. */
const DELAY_MS_MIN = 20;
const DELAY_MS_STEP = 10;

/** Turns what is seen of a task, look by look, into the steps of an exchange. Ids, leases and times stay out of it. */
export class ExchangeRecording {
  readonly #letter: Message;
  readonly #nowMs: () => number;
  readonly #secrets: readonly string[];
  readonly #steps: (WrittenStep | WrittenArtifact)[] = [];
  readonly #artifacts = new Map<string, WrittenArtifact>();
  #lastMs: number;

  constructor(
    letter: Message,
    options: { readonly nowMs: () => number; readonly secrets: readonly string[] },
  ) {
    this.#letter = letter;
    this.#nowMs = options.nowMs;
    this.#secrets = options.secrets.filter((secret) => secret !== "");
    this.#lastMs = this.#nowMs();
  }

  /** The requester took this long; the agent did not. */
  goOn(): void {
    this.#lastMs = this.#nowMs();
  }

  status(text: string): void {
    this.#add({ status: text });
  }

  /** Parts that were not there before: a new artifact, or more of one. */
  artifact({ artifactId, name, description }: Artifact, fresh: readonly Part[]): void {
    const known = this.#artifacts.get(artifactId);
    if (known !== undefined) {
      known.chunks.push(fresh);
      return;
    }
    const written: WrittenArtifact = {
      ...(typeof name === "string" ? { name } : {}),
      ...(typeof description === "string" ? { description } : {}),
      chunks: [fresh],
    };
    this.#artifacts.set(artifactId, written);
    this.#add(written);
  }

  end(result: Result): void {
    this.#add(endingStep(result));
  }

  toExchange(): WrittenExchange {
    const { type, body, subject } = this.#letter;
    const match = {
      ...(type === WORK_KINDS[0] ? {} : { kind: type }),
      ...(body === "" ? { subject } : { text: body }),
    };
    const reply = this.#steps.map((step) =>
      "chunks" in step ? artifactStep(step as WrittenArtifact) : step,
    );
    return this.#clean({ match, reply }) as WrittenExchange;
  }

  #add(step: WrittenStep | WrittenArtifact): void {
    const nowMs = this.#nowMs();
    const tookMs = Math.round((nowMs - this.#lastMs) / DELAY_MS_STEP) * DELAY_MS_STEP;
    if (tookMs >= DELAY_MS_MIN) this.#steps.push({ delay_ms: Math.min(tookMs, CASSETTE_LIMITS.delayMsMax) });
    this.#lastMs = nowMs;
    this.#steps.push(step);
  }

  /** The recorder's own key has no business in a file, wherever it was said. */
  #clean(value: unknown): unknown {
    if (typeof value === "string") {
      return this.#secrets.reduce((text, secret) => text.replaceAll(secret, "[secret]"), value);
    }
    if (Array.isArray(value)) return value.map((item) => this.#clean(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#clean(member)]));
  }
}

/** Whether two exchanges say the same, however long it took them. */
export function isSameExchange(one: WrittenExchange, other: WrittenExchange): boolean {
  return timeless(one) === timeless(other);
}

function timeless({ match, reply }: WrittenExchange): string {
  return JSON.stringify([match, reply.filter((step) => !("delay_ms" in step))]);
}

function endingStep({ state, text, parts, isPartial }: Result): WrittenStep {
  // A relay needs a reason, and a question a text, for either to be told.
  const said = text.trim() === "" ? state : text;
  if (state === "input-required") return { ask: said };
  if (state === "auth-required") return { auth: said };
  if (state === "rejected") return { reject: said };
  if (state === "failed" || state === "canceled") return { fail: said };
  if (parts === undefined && !isPartial) return { reply: text };
  return {
    reply: { text, ...(parts === undefined ? {} : { parts }), ...(isPartial ? { partial: true } : {}) },
  };
}

function artifactStep({ chunks, ...about }: WrittenArtifact): WrittenStep {
  const [whole = []] = chunks;
  const content = chunks.length === 1 ? contentOf(whole) : { chunks: chunks.map(chunkOf) };
  return { artifact: { ...about, ...content } };
}

function chunkOf(parts: readonly Part[]): unknown {
  const content = contentOf(parts);
  return "text" in content ? content["text"] : content;
}

/** The shortest way to write it. */
function contentOf(parts: readonly Part[]): Readonly<Record<string, unknown>> {
  const [part, another] = parts;
  if (part === undefined || another !== undefined) return { parts };
  const { kind, type, ...content } = part;
  const dialect = kind ?? type;
  const [member, ...others] = Object.keys(content);
  if (others.length > 0 || dialect !== member) return { parts };
  if (member === "text" && typeof part["text"] === "string") return { text: part["text"] };
  return member === "data" ? { data: part["data"] } : { parts };
}
