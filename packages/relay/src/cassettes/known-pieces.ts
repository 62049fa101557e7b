import type { TaskView } from "@a2a-relay/protocol";

/** A piece of an artifact, by how much it is. */
export interface PieceSize {
  readonly artifactId: string;
  readonly append: boolean;
  readonly partCount: number;
}

/**
 * What a task has of each artifact from an attempt before this one. Putting an artifact twice is putting it once, but
 * what is added twice is there twice.
 */
export class KnownPieces {
  /** As the task had it when its mail was taken, or has it by now. */
  readonly #there: Map<string, number>;
  readonly #counted: Map<string, number>;

  /** `counted`: how many parts each artifact has behind the steps that were counted; it goes on from there. */
  constructor({ artifacts }: Pick<TaskView, "artifacts">, counted = new Map<string, number>()) {
    this.#counted = counted;
    this.#there = new Map(artifacts.map(({ artifactId, parts }) => [artifactId, parts.length]));
  }

  /** A step that was told in a turn before. */
  count({ artifactId, append, partCount }: PieceSize): number {
    const count = (append ? (this.#counted.get(artifactId) ?? 0) : 0) + partCount;
    this.#counted.set(artifactId, count);
    return count;
  }

  /** The next step; false if the task has that piece already. */
  isNew(piece: PieceSize): boolean {
    const count = this.count(piece);
    const { artifactId, append } = piece;
    if (append && (this.#there.get(artifactId) ?? 0) >= count) return false;
    this.#there.set(artifactId, count);
    return true;
  }
}
