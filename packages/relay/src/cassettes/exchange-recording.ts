import type { Artifact, Message, Part, TaskView } from "@a2a-relay/protocol";
import { CASSETTE_LIMITS, WORK_KINDS } from "./cassette.ts";

/** An exchange as a cassette has it: plain data with the members of the guide. */
export interface WrittenExchange {
  readonly match: Readonly<Record<string, unknown>>;
  readonly reply: readonly WrittenStep[];
}

type WrittenStep = Readonly<Record<string, unknown>>;

/** A text and parts, as a cassette writes them. */
export interface Words {
  readonly text?: string | undefined;
  readonly parts?: readonly Part[] | undefined;
}

/** How a turn of a real agent ended: with a question or a final state. */
export interface RecordedEnd {
  readonly state: TaskView["state"];
  readonly said: Words;
  readonly isPartial?: boolean;
  /** It answered with a message, and not with a task. */
  readonly isPlain?: boolean;
}

/** A whole artifact, or a chunk of one. */
interface RecordedPiece {
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

/** Chunks of one artifact without other steps between them. */
interface Pieces {
  readonly artifactId: string;
  readonly about: Readonly<Record<string, string>>;
  readonly append: boolean;
  readonly chunks: (readonly Part[] | { readonly delay_ms: number })[];
  isComplete: boolean;
}

/** Shorter pauses come from the network, not from the agent. */
const DELAY_MS_MIN = 20;
const DELAY_MS_STEP = 10;

/** Converts the steps of a task into the steps of an exchange, without ids, leases and times. */
export class ExchangeRecording {
  readonly #message: Message;
  readonly #nowMs: () => number;
  readonly #secrets: readonly string[];
  readonly #steps: (WrittenStep | Pieces)[] = [];
  /** Name and description of each artifact. */
  readonly #about = new Map<string, Readonly<Record<string, string>>>();
  #lastMs: number;

  constructor(
    message: Message,
    options: { readonly nowMs: () => number; readonly secrets: readonly string[] },
  ) {
    this.#message = message;
    this.#nowMs = options.nowMs;
    this.#secrets = options.secrets.filter((secret) => secret !== "");
    this.#lastMs = this.#nowMs();
  }

  /** The time since the last step was the requester's, not the agent's. */
  goOn(): void {
    this.#lastMs = this.#nowMs();
  }

  status(said: Words | undefined): void {
    this.#add({ status: said === undefined ? null : wordsStep(said, said.text ?? "") });
  }

  artifact({ artifact, append, lastChunk }: RecordedPiece): void {
    const { artifactId, parts } = artifact;
    const about = this.#newMembers(artifact, append);
    const open = this.#steps.at(-1);
    if (append && isPieces(open) && isContinued(open, artifactId) && Object.keys(about).length === 0) {
      open.chunks.push(...this.#delay(), parts);
      open.isComplete = lastChunk;
      return;
    }
    this.#add({ artifactId, about, append, chunks: [parts], isComplete: lastChunk });
  }

  end(end: RecordedEnd): void {
    this.#add(endingStep(end));
  }

  toExchange(): WrittenExchange {
    const { type, body, subject } = this.#message;
    const match = {
      ...(type === WORK_KINDS[0] ? {} : { kind: type }),
      ...(body === "" ? { subject } : { text: body }),
    };
    const names = namesOf(this.#steps.filter(isPieces));
    const reply = this.#steps.map((step) =>
      isPieces(step) ? artifactStep(step, names.get(step.artifactId)) : step,
    );
    return this.#clean({ match, reply }) as WrittenExchange;
  }

  #add(step: WrittenStep | Pieces): void {
    this.#steps.push(...this.#delay(), step);
  }

  /** The time since the last step, if it is long enough. */
  #delay(): readonly { readonly delay_ms: number }[] {
    const nowMs = this.#nowMs();
    const tookMs = Math.round((nowMs - this.#lastMs) / DELAY_MS_STEP) * DELAY_MS_STEP;
    this.#lastMs = nowMs;
    return tookMs < DELAY_MS_MIN ? [] : [{ delay_ms: Math.min(tookMs, CASSETTE_LIMITS.delayMsMax) }];
  }

  /** Name and description, where they differ from earlier chunks: many agents repeat them each time. */
  #newMembers(artifact: Artifact, append: boolean): Readonly<Record<string, string>> {
    const { artifactId } = artifact;
    const known = (append ? this.#about.get(artifactId) : undefined) ?? {};
    const changed: Record<string, string> = {};
    for (const member of ["name", "description"]) {
      const value = artifact[member];
      if (typeof value === "string" && value !== "" && value !== known[member]) changed[member] = value;
    }
    this.#about.set(artifactId, { ...known, ...changed });
    return changed;
  }

  /** Removes the recorder's key and other secrets. */
  #clean(value: unknown): unknown {
    if (typeof value === "string") {
      return this.#secrets.reduce((text, secret) => text.replaceAll(secret, "[secret]"), value);
    }
    if (Array.isArray(value)) return value.map((item) => this.#clean(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#clean(member)]));
  }
}

/** Whether two exchanges are equal apart from delays. */
export function isSameExchange(one: WrittenExchange, other: WrittenExchange): boolean {
  return timeless(one) === timeless(other);
}

function timeless({ match, reply }: WrittenExchange): string {
  const withoutDelays = (_name: string, value: unknown): unknown =>
    Array.isArray(value) ? value.filter((item) => !isDelay(item)) : value;
  return JSON.stringify([match, reply], withoutDelays);
}

function isDelay(item: unknown): boolean {
  return typeof item === "object" && item !== null && Object.keys(item).join(",") === "delay_ms";
}

function isPieces(step: WrittenStep | Pieces | undefined): step is Pieces {
  return step !== undefined && "artifactId" in step;
}

/** Only the last chunk of a step can complete the artifact. */
function isContinued({ artifactId, isComplete, chunks }: Pieces, nextId: string): boolean {
  return artifactId === nextId && !isComplete && chunks.length + 2 <= CASSETTE_LIMITS.chunksMax;
}

function endingStep({ state, said, isPartial = false, isPlain = false }: RecordedEnd): WrittenStep {
  const { text = "", parts } = said;
  // A relay requires a reason, and a text for a question.
  const filled = text.trim() === "" ? state : text;
  if (state === "input-required") return { ask: wordsStep(said, filled) };
  if (state === "auth-required") return { auth: wordsStep(said, filled) };
  if (state === "rejected") return { reject: wordsStep(said, filled) };
  if (state === "failed" || state === "canceled") return { fail: wordsStep(said, filled) };
  // Without content there is no message.
  const isMessage = isPlain && (text !== "" || parts !== undefined);
  const isBare = parts === undefined && !isPartial && !(isMessage && text.trim() === "");
  const words = isBare
    ? text
    : { text, ...(parts === undefined ? {} : { parts }), ...(isPartial ? { partial: true } : {}) };
  return isMessage ? { message: words } : { reply: words };
}

function wordsStep({ text, parts }: Words, otherwise: string): unknown {
  if (parts === undefined) return otherwise;
  return text === undefined || text === "" ? { parts } : { text, parts };
}

/** An artifact needs an id only where several steps refer to it. */
function namesOf(all: readonly Pieces[]): ReadonlyMap<string, string> {
  const ids = [...new Set(all.map(({ artifactId }) => artifactId))];
  const several = ids.filter((id) => all.filter(({ artifactId }) => artifactId === id).length > 1);
  return new Map(several.map((id, index) => [id, `recorded-${index + 1}`]));
}

function artifactStep({ about, append, chunks, isComplete }: Pieces, id: string | undefined): WrittenStep {
  const [first] = chunks;
  const isWhole = chunks.length === 1 && first !== undefined && !("delay_ms" in first);
  return {
    artifact: {
      ...(id === undefined ? {} : { id }),
      ...about,
      ...(append ? { append } : {}),
      ...(isWhole ? contentOf(first) : { chunks: chunks.map(chunkOf) }),
      ...(isComplete === !append ? {} : { last_chunk: isComplete }),
    },
  };
}

function chunkOf(chunk: Pieces["chunks"][number]): unknown {
  if ("delay_ms" in chunk) return chunk;
  const content = contentOf(chunk);
  return "text" in content ? content["text"] : content;
}

/** The shortest form. */
function contentOf(parts: readonly Part[]): Readonly<Record<string, unknown>> {
  const [part, another] = parts;
  if (part === undefined || another !== undefined) return { parts };
  const { kind, type, ...content } = part;
  const [member, ...others] = Object.keys(content);
  if (others.length > 0 || (kind ?? type ?? member) !== member) return { parts };
  if (member === "text" && typeof part["text"] === "string") return { text: part["text"] };
  return member === "data" ? { data: part["data"] } : { parts };
}
