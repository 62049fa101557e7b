import { createHash } from "node:crypto";
import type { RelayClient } from "@a2a-relay/client";
import type { TaskView } from "@a2a-relay/protocol";

/** The size of a chunk of an artifact. */
interface PieceSize {
  readonly artifactId: string;
  readonly append: boolean;
  readonly partCount: number;
}

/**
 * How many parts of each artifact a task has from an earlier attempt. Putting an artifact twice is safe; appending a
 * chunk twice is not.
 */
export class ArtifactProgress {
  /** Parts of each artifact on the relay. */
  readonly #stored: Map<string, number>;
  readonly #counted: Map<string, number>;

  /** `counted`: how many parts each artifact has after the steps that were played before. */
  constructor({ artifacts }: Pick<TaskView, "artifacts">, counted = new Map<string, number>()) {
    this.#counted = counted;
    this.#stored = new Map(artifacts.map(({ artifactId, parts }) => [artifactId, parts.length]));
  }

  /** Counts a chunk of an earlier turn. */
  count({ artifactId, append, partCount }: PieceSize): number {
    const count = (append ? (this.#counted.get(artifactId) ?? 0) : 0) + partCount;
    this.#counted.set(artifactId, count);
    return count;
  }

  /** Counts the next chunk; false if the task has it already. */
  isNew(piece: PieceSize): boolean {
    const count = this.count(piece);
    const { artifactId, append } = piece;
    if (append && (this.#stored.get(artifactId) ?? 0) >= count) return false;
    this.#stored.set(artifactId, count);
    return true;
  }
}

interface AnsweringMessage {
  readonly agentId: string;
  readonly taskId: string;
  readonly messageId: string;
}

/** The events are in the journal already: reading them takes no longer. */
const TELL_MS_MAX = 30_000;

/**
 * How many questions were answered before this message was leased, from the events of the task: a restarted process
 * knows it too. A question that was asked twice, because its agent died after it, counts once.
 */
export async function answeredQuestions(
  client: RelayClient,
  { agentId, taskId, messageId }: AnsweringMessage,
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(TELL_MS_MAX)]);
  let answered = 0;
  for await (const { event } of client.streamTask(taskId, {}, { signal: bounded })) {
    // "working" by another actor than the agent is an answer of the requester.
    if (event.type === "task.working" && event.actor !== agentId) answered += 1;
    if (event.type === "message.leased" && event.message_id === messageId) break;
  }
  return answered;
}

/** An idempotency key for a message that is sent because of another one; its length is fixed. */
export function messageKey(what: string, messageId: string): string {
  return `${what}-${createHash("sha256").update(messageId).digest("hex")}`;
}
