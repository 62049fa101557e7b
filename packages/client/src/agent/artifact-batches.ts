import type { Part } from "@a2a-relay/protocol";
import { onAbort } from "../http/abort.ts";

/** One piece of an artifact: text, a part, or several parts. */
export type ArtifactPiece = string | Part | readonly Part[];
export type ArtifactPieces = AsyncIterable<ArtifactPiece> | Iterable<ArtifactPiece>;

export interface ArtifactBatch {
  /** Empty only in the last batch. */
  readonly parts: readonly Part[];
  readonly isLast: boolean;
}

/** A reader perceives ten updates a second as continuous. */
const WAIT_MS_FIRST = 100;
/** Each batch waits longer, so that half an hour of pieces fits into one artifact. */
const WAIT_MS_MORE = 1;
const BATCH_CHARS_MAX = 16_384;

/** Batches pieces that come within a short time, and joins consecutive texts into one part. */
export class ArtifactBatches {
  readonly #signal: AbortSignal;
  #parts: Part[] = [];
  #end: { readonly failure?: unknown } | undefined;
  #wake = (): void => {};
  #makeRoom = (): void => {};

  private constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Rejects when the source fails or the signal is aborted; then, and when the reader leaves, it ends the source. */
  static async *of(
    pieces: ArtifactPieces,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<ArtifactBatch, void, void> {
    const batches = new ArtifactBatches(signal);
    const unsubscribe = onAbort(signal, () => batches.#wake());
    const reading = batches.#read(pieces);
    try {
      for (let count = 0; ; count += 1) {
        const batch = await batches.#next(WAIT_MS_FIRST + WAIT_MS_MORE * count);
        yield batch;
        if (batch.isLast) break;
      }
      await reading;
    } finally {
      unsubscribe();
      batches.#end ??= {};
      batches.#makeRoom();
    }
  }

  /** Reads pieces while there is room. Never rejects. */
  async #read(pieces: ArtifactPieces): Promise<void> {
    try {
      for await (const piece of pieces) {
        if (this.#end !== undefined) return;
        this.#parts = withPiece(this.#parts, piece);
        this.#wake();
        if (this.#isFull()) await new Promise<void>((resolve) => (this.#makeRoom = resolve));
      }
      this.#end ??= {};
    } catch (failure) {
      this.#end ??= { failure };
    }
    this.#wake();
  }

  async #next(waitMs: number): Promise<ArtifactBatch> {
    // The time starts with the first piece.
    await this.#until(() => this.#parts.length > 0);
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      this.#wake();
    }, waitMs);
    await this.#until(() => isOver || this.#isFull()).finally(() => clearTimeout(timer));
    if (this.#end !== undefined && "failure" in this.#end) throw this.#end.failure;
    const batch = { parts: this.#parts, isLast: this.#end !== undefined };
    this.#parts = [];
    this.#makeRoom();
    return batch;
  }

  /** Or until the pieces have ended. */
  async #until(isReady: () => boolean): Promise<void> {
    for (;;) {
      this.#signal.throwIfAborted();
      if (this.#end !== undefined || isReady()) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #isFull(): boolean {
    let chars = 0;
    for (const part of this.#parts) chars += charsIn(part);
    return chars >= BATCH_CHARS_MAX;
  }
}

/** Appends a piece; text that follows text of the same kind is joined. */
export function withPiece(parts: readonly Part[], piece: ArtifactPiece): Part[] {
  const all = [...parts];
  for (const part of partsOf(piece)) {
    const before = all.at(-1);
    const joined = before === undefined ? undefined : joinTexts(before, part);
    if (joined === undefined) all.push(part);
    else all[all.length - 1] = joined;
  }
  return all;
}

function partsOf(piece: ArtifactPiece): readonly Part[] {
  if (typeof piece === "string") return piece === "" ? [] : [{ text: piece }];
  return isParts(piece) ? piece : [piece];
}

function isParts(piece: Part | readonly Part[]): piece is readonly Part[] {
  return Array.isArray(piece);
}

/** Undefined when one of them is no text, or when their other members differ. */
function joinTexts(before: Part, after: Part): Part | undefined {
  const { text: first, ...more } = before;
  const { text: second, ...rest } = after;
  if (typeof first !== "string" || typeof second !== "string") return undefined;
  return JSON.stringify(more) === JSON.stringify(rest) ? { ...before, text: first + second } : undefined;
}

function charsIn(part: Part): number {
  const { text } = part;
  return typeof text === "string" ? text.length : JSON.stringify(part).length;
}
