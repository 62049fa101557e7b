import { setTimeout as sleep } from "node:timers/promises";
import {
  type AgentTask,
  type SaidParts,
  type A2aStreamEvent,
  isTerminalState,
  type RelayClient,
} from "@a2a-relay/client";
import {
  type A2aArtifactUpdate,
  type A2aStatusUpdate,
  isTerminal,
  readTaskState,
  type TaskState,
  textOfParts,
  RelayError,
  type RelayErrorCode,
} from "@a2a-relay/protocol";
import type { ExchangeRecording } from "./exchange-recording.ts";
import { ArtifactProgress } from "./resume.ts";

interface StepForwarderParts {
  readonly task: AgentTask;
  readonly recording: ExchangeRecording;
  /** The last step before this turn was a question. */
  readonly isAsked: boolean;
  /** How many answers of the requester are older than this turn. Steps before the last of them were reported. */
  readonly answersKnown: number;
  /** How many parts each artifact had after the last step before this turn. */
  readonly partCounts: Map<string, number>;
}

/** The end of a turn: a final state or a question. */
export interface TurnEnd {
  readonly state: TaskState;
  readonly said: SaidParts;
}

/** Records each step of the real agent's task, and reports it to the requester. */
export class StepForwarder {
  readonly #task: AgentTask;
  readonly #recording: ExchangeRecording;
  readonly #pieces: ArtifactProgress;
  readonly #failing = new AbortController();
  /** Reports run in order: when the last is done, all are. */
  #lastReport: Promise<unknown> = Promise.resolve();
  #isAsked: boolean;
  #answersKnown: number;

  constructor({ task, recording, isAsked, answersKnown, partCounts }: StepForwarderParts) {
    this.#task = task;
    this.#recording = recording;
    this.#isAsked = isAsked;
    this.#answersKnown = answersKnown;
    this.#pieces = new ArtifactProgress(task.view, partCounts);
  }

  /** Aborted with the reason when a report fails. */
  get signal(): AbortSignal {
    return this.#failing.signal;
  }

  /** Does not wait for the report: its time must not be recorded as a delay of the agent. */
  take({ statusUpdate, artifactUpdate }: UpstreamStep): TurnEnd | undefined {
    if (artifactUpdate !== undefined) this.#takeArtifact(artifactUpdate);
    return statusUpdate === undefined ? undefined : this.#takeStatus(statusUpdate);
  }

  /** Resolves when the relay has all reports. */
  async reported(): Promise<void> {
    await this.#lastReport;
    this.signal.throwIfAborted();
  }

  #takeStatus(update: A2aStatusUpdate): TurnEnd | undefined {
    const state = readTaskState(update.status.state);
    // A task that was handed over starts again; its requester is not told.
    if (state === undefined || state === "submitted") return undefined;
    const said = saidIn(update);
    if (state === "working") {
      this.#takeWorking(said);
      return undefined;
    }
    const end = { state, said: said ?? {} };
    if (isTerminal(state)) return end;
    this.#isAsked = true;
    if (this.#answersKnown === 0) return end;
    this.#recording.end(end);
    return undefined;
  }

  #takeWorking(said: SaidParts | undefined): void {
    const isAnswered = this.#isAsked && said === undefined;
    this.#isAsked = false;
    if (isAnswered) {
      // The relay reports an answer as "working", to the requester too.
      this.#recording.goOn();
      if (this.#answersKnown > 0) this.#answersKnown -= 1;
      return;
    }
    this.#recording.status(said);
    if (this.#answersKnown === 0) this.#report(() => this.#task.report("working", said));
  }

  #takeArtifact(update: A2aArtifactUpdate): void {
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

/** The message of the status; a single text part becomes only `text`. */
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

/** A step of a task, with its event id. */
type UpstreamStep = A2aStreamEvent & { readonly eventId: string };

interface FollowedFrom {
  /** The agent that works on the task. */
  readonly agentId: string;
  readonly taskId: string;
  /** The event id of the last step that was read. */
  readonly afterId: string;
}

/** The event id before the first step. */
export const NO_STEP = "0";

const AWAY_CODES: readonly RelayErrorCode[] = ["unavailable", "resource_exhausted"];
const AWAY_MS = 1_000;

/**
 * Every step of a task after `afterId`, once and in order, until its end. While the relay cannot be reached, it tries
 * again each second.
 */
export async function* upstreamSteps(
  client: RelayClient,
  { agentId, taskId, afterId }: FollowedFrom,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<UpstreamStep, void, void> {
  const agent = client.a2a(agentId);
  let lastEventId = afterId;
  for (;;) {
    try {
      for await (const event of agent.subscribe(taskId, { lastEventId, signal })) {
        const { eventId } = event;
        // Without streams the client polls the task, which has no history of steps.
        if (eventId === undefined) break;
        lastEventId = eventId;
        yield { ...event, eventId };
        if (isOver(event)) return;
      }
    } catch (reason) {
      signal.throwIfAborted();
      if (!(reason instanceof RelayError) || !AWAY_CODES.includes(reason.code)) throw reason;
    }
    await sleep(AWAY_MS, undefined, { signal }).catch(() => undefined);
    signal.throwIfAborted();
  }
}

function isOver({ statusUpdate }: A2aStreamEvent): boolean {
  return isTerminalState(statusUpdate?.status.state);
}
