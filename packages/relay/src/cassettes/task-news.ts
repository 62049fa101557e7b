import type { AgentTask, SaidParts } from "@a2a-relay/client";
import {
  type A2aArtifactUpdate,
  type A2aStatusUpdate,
  isTerminal,
  readTaskState,
  type TaskState,
  textOfParts,
} from "@a2a-relay/protocol";
import type { ExchangeRecording } from "./exchange-recording.ts";
import { KnownPieces } from "./known-pieces.ts";
import type { TaskStep } from "./task-steps.ts";

export interface TaskNewsParts {
  readonly task: AgentTask;
  readonly recording: ExchangeRecording;
  /** The last step that is known was a question. */
  readonly isAsked: boolean;
  /** So many answers of the requester are older than this turn: what came before the last of them, it knows. */
  readonly answersKnown: number;
  /** How many parts each artifact has behind the last step that is known. */
  readonly partCounts: Map<string, number>;
}

/** What ends a turn: the task is over, or asks. */
export interface TurnEnd {
  readonly state: TaskState;
  readonly said: SaidParts;
}

/** Records each step of the real agent's task, and tells it to the requester. */
export class TaskNews {
  readonly #task: AgentTask;
  readonly #recording: ExchangeRecording;
  readonly #pieces: KnownPieces;
  readonly #failing = new AbortController();
  /** Reports wait for each other, so that the last one is behind all others. */
  #lastReport: Promise<unknown> = Promise.resolve();
  #isAsked: boolean;
  #answersKnown: number;

  constructor({ task, recording, isAsked, answersKnown, partCounts }: TaskNewsParts) {
    this.#task = task;
    this.#recording = recording;
    this.#isAsked = isAsked;
    this.#answersKnown = answersKnown;
    this.#pieces = new KnownPieces(task.view, partCounts);
  }

  /** Aborted with the reason why the requester cannot be told. */
  get signal(): AbortSignal {
    return this.#failing.signal;
  }

  /** Does not wait until it is told: how long that takes is no time of the agent's. */
  hear({ statusUpdate, artifactUpdate }: TaskStep): TurnEnd | undefined {
    if (artifactUpdate !== undefined) this.#hearArtifact(artifactUpdate);
    return statusUpdate === undefined ? undefined : this.#hearStatus(statusUpdate);
  }

  /** Once the requester has heard all of it. */
  async told(): Promise<void> {
    await this.#lastReport;
    this.signal.throwIfAborted();
  }

  #hearStatus(update: A2aStatusUpdate): TurnEnd | undefined {
    const state = readTaskState(update.status.state);
    // A task that was handed over is at its beginning again, and its requester need not know.
    if (state === undefined || state === "submitted") return undefined;
    const said = saidIn(update);
    if (state === "working") {
      this.#hearWorking(said);
      return undefined;
    }
    const end = { state, said: said ?? {} };
    if (isTerminal(state)) return end;
    this.#isAsked = true;
    if (this.#answersKnown === 0) return end;
    this.#recording.end(end);
    return undefined;
  }

  #hearWorking(said: SaidParts | undefined): void {
    const isAnswered = this.#isAsked && said === undefined;
    this.#isAsked = false;
    if (isAnswered) {
      // The relay says so when an answer has come; it will say so to the requester, too.
      this.#recording.goOn();
      if (this.#answersKnown > 0) this.#answersKnown -= 1;
      return;
    }
    this.#recording.status(said);
    if (this.#answersKnown === 0) this.#report(() => this.#task.report("working", said));
  }

  #hearArtifact(update: A2aArtifactUpdate): void {
    const { artifact, append = false, lastChunk = false } = update;
    this.#recording.artifact({ artifact, append, lastChunk });
    const piece = { artifactId: artifact.artifactId, append, partCount: artifact.parts.length };
    if (this.#answersKnown > 0) {
      this.#pieces.count(piece);
      return;
    }
    if (!this.#pieces.isNew(piece)) return;
    const parts = [...artifact.parts];
    const how = { append, lastChunk, ...metadataOf(update) };
    this.#report(() => this.#task.addArtifact({ ...artifact, parts }, how));
  }

  #report(tell: () => Promise<unknown>): void {
    const report = tell();
    report.catch((reason: unknown) => this.#failing.abort(reason));
    this.#lastReport = report;
  }
}

const OWN_MEMBERS = new Set(["messageId", "role", "parts", "taskId", "contextId", "kind"]);

/** What was said with the status; a text alone is just that. */
function saidIn(update: A2aStatusUpdate): SaidParts | undefined {
  const { message } = update.status;
  const about = metadataOf(update);
  if (message === undefined) return about.metadata === undefined ? undefined : about;
  const { parts } = message;
  const isBare = parts.length === 1 && Object.keys(parts[0] ?? {}).join(",") === "text";
  const more = Object.entries(message).filter(([name]) => !OWN_MEMBERS.has(name));
  return {
    ...about,
    text: textOfParts(parts),
    ...(isBare ? {} : { parts }),
    ...(more.length === 0 ? {} : { a2aMessage: Object.fromEntries(more) }),
  };
}

function metadataOf(update: Readonly<Record<string, unknown>>): Pick<SaidParts, "metadata"> {
  const { metadata } = update;
  return metadata === undefined ? {} : { metadata: metadata as Readonly<Record<string, unknown>> };
}
