import type { A2aMessage, A2aTask, ArtifactInput, Message, MessageInput, RelayError, TaskCompleteRequest, TaskStatusRequest, TaskView } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { withArtifactId, withIdempotencyKey } from "../http/idempotency.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import { ArtifactBatches, type ArtifactPieces } from "./artifact-batches.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";
import type { Outcome } from "./settlement.ts";
import { askedOverA2a, type AskedOverA2a, reasonRequest, type Said, saidMessageInput, type SaidParts, saidRequest } from "./task-content.ts";
import { TaskReports } from "./task-reports.ts";

/** What a task handler may return: the answer's text, or more than text. Nothing is an answer without text. */
export type TaskReply = string | TaskReplyParts | undefined | void;

export interface TaskReplyParts extends SaidParts {
  readonly artifacts?: readonly ArtifactInput[] | undefined;
  /** `partial` says that the task is completed as far as it could be. Default `ok`. */
  readonly resultStatus?: "ok" | "partial" | undefined;
  /** An A2A caller that waits is answered with a plain message instead of the task. */
  readonly plain?: boolean | undefined;
}

export interface AddArtifactOptions {
  /** Adds the parts to the artifact of the same id instead of replacing it. */
  readonly append?: boolean | undefined;
  /** Nothing more of this artifact comes. Default: true for one that is not appended to. */
  readonly lastChunk?: boolean | undefined;
  /** A2A metadata of this step of the task, beside that of the artifact. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface AgentTaskParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly mail: LeasedMessage;
  /** The task as it stood when its mail was taken. */
  readonly view: TaskView;
  /** Takes what the handler decides without returning it; that wins over what it returns. */
  readonly decide: (outcome: Outcome) => void;
}

/** A task in the hands of its handler. */
export class AgentTask {
  readonly #parts: AgentTaskParts;
  readonly #reports: TaskReports;

  constructor(parts: AgentTaskParts) {
    this.#parts = parts;
    this.#reports = new TaskReports(parts);
  }

  get id(): string {
    return this.#parts.view.id;
  }

  /** The task as it stood when its mail was taken: deadline, parent, artifacts so far, who handed it over. */
  get view(): TaskView {
    return this.#parts.view;
  }

  /** The message that asks: the request, the handoff, or what its requester added since. */
  get message(): Message {
    return this.#parts.mail.item.message;
  }

  /** The same message in the words of A2A 1.0, whichever wire or dialect it came in. */
  get a2a(): AskedOverA2a {
    return askedOverA2a(this.message, this.view);
  }

  get text(): string {
    return this.message.body;
  }

  get subject(): string {
    return this.#parts.view.subject;
  }

  get requester(): string {
    return this.#parts.view.requester;
  }

  /** How often this mail has been leased: more than 1 means that somebody began before. */
  get attempt(): number {
    return this.#parts.mail.item.lease.attempt;
  }

  /** True when the message adds to a task that this agent was given before, such as the answer to a question. */
  get isFollowUp(): boolean {
    return this.#parts.view.message_id !== this.#parts.mail.item.message_id;
  }

  /**
   * Aborted with a RelayError when going on is of no use: `lease_lost`, `task_canceled`, another code when the
   * task ended without this worker (its deadline passed), or `unavailable` when this agent is stopping.
   */
  get signal(): AbortSignal {
    return this.#parts.mail.signal;
  }

  /** The task as it stands now, as its A2A caller sees it: with its status, artifacts and history. */
  async a2aTask(): Promise<A2aTask> {
    const { client, agentId, delays, errors } = this.#parts;
    const { signal } = this;
    const onAway = (error: RelayError): void => errors.report(error, "task");
    const look = (): Promise<A2aTask> => client.a2a(agentId).getTask(this.id, { signal });
    return untilReached(look, { signal, delays, onAway });
  }

  /** All that was said about the task so far, by both sides, oldest first. */
  async history(): Promise<readonly A2aMessage[]> {
    return (await this.a2aTask()).history ?? [];
  }

  /**
   * Tells the requester how far the work is. A relay that is away does not stop the work: the report is
   * dropped and `onError` hears of it. Throws when the work is to stop, as `signal` says too.
   */
  async working(said?: Said): Promise<void> {
    await this.#reports.tryStatus({ state: "working", ...saidRequest(said) });
  }

  /**
   * Tells the requester how the task stands, and goes on working: for work that waits for what comes another way, such
   * as an authorisation, or that `endTurn` ends. A relay that is away is waited for.
   */
  async report(state: TaskStatusRequest["state"], said?: Said): Promise<void> {
    await this.#reports.status({ state, ...saidRequest(said) });
  }

  /**
   * Puts an artifact, or with `append` adds parts to the one of the same id. Answers with its id. A relay that is away
   * is waited for; what is put or added is there once, in the order of the calls.
   */
  async addArtifact(artifact: ArtifactInput, options: AddArtifactOptions = {}): Promise<string> {
    const { append, lastChunk, metadata } = options;
    const named = withArtifactId(artifact);
    const artifactId = named.artifactId ?? named.artifact_id ?? "";
    await this.#reports.artifact(artifactId, {
      artifact: named,
      ...(append === true ? { append } : {}),
      ...(lastChunk === undefined ? {} : { last_chunk: lastChunk }),
      ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
    });
    return artifactId;
  }

  /**
   * Puts an artifact as its pieces come, such as the words of a language model. Those that come within a moment go out
   * together. Answers with the artifact's id when all of it is there.
   */
  async streamArtifact(artifact: Omit<ArtifactInput, "parts">, pieces: ArtifactPieces): Promise<string> {
    const named = withArtifactId({ ...artifact, parts: [] });
    let append = false;
    for await (const { parts, isLast } of ArtifactBatches.of(pieces, this)) {
      // A piece of nothing: an artifact is never without parts, and its readers wait for the last one.
      const some = parts.length === 0 ? [{ text: "" }] : [...parts];
      await this.addArtifact({ ...named, parts: some }, { append, lastChunk: isLast });
      append = true;
    }
    return named.artifactId ?? named.artifact_id ?? "";
  }

  /** Whether the task has an artifact of this id, from this turn or from one before. */
  hasArtifact(artifactId: string): boolean {
    return this.#reports.hasArtifact(artifactId);
  }

  /**
   * Asks the requester and ends this turn: the handler should return now. The answer comes to the same
   * handler as a new turn with `isFollowUp`, perhaps in another process of this agent.
   */
  askInput(question: Said): void {
    const message = { ...this.#message(this.requester, question), type: "reply", needs_reply: true } as const;
    this.#parts.decide({ act: "ask", message: withIdempotencyKey(message) });
  }

  /** As `askInput`, for an authorisation that the work needs. */
  askAuth(request: Said): void {
    const message = { ...this.#message(this.requester, request), type: "status", needs_reply: true } as const;
    this.#parts.decide({
      act: "ask",
      message: withIdempotencyKey({ ...message, task_state: "auth-required" }),
    });
  }

  /** Ends this turn and not the task, whose requester was told with `report` that it is waited for. */
  endTurn(): void {
    this.#parts.decide({ act: "acknowledge" });
  }

  /**
   * Completes the task with a plain message, which an A2A caller that waits gets in place of the task.
   * Takes effect when the handler returns.
   */
  answerPlainly(said: Said): void {
    this.#parts.decide({ act: "complete", request: { ...saidRequest(said), plain: true } });
  }

  /** Declines the task before any of it is done. Takes effect when the handler returns. */
  reject(reason: Said): void {
    this.#parts.decide({ act: "reject", request: reasonRequest(reason) });
  }

  /** Gives up on the task, as a thrown error does. Takes effect when the handler returns. */
  fail(reason: Said): void {
    this.#parts.decide({ act: "fail", request: reasonRequest(reason) });
  }

  /** Passes the task on to another agent; its result will go to the same requester. Takes effect at the end. */
  handOff(to: string, said: Said): void {
    const handoff = { ...this.#message(to, said), type: "handoff" } as const;
    this.#parts.decide({ act: "hand_over", message: withIdempotencyKey(handoff) });
  }

  #message(to: string, said: Said): MessageInput {
    const about = { from: this.#parts.agentId, to, task_id: this.id, reply_to: this.message.id };
    return { ...about, ...saidMessageInput(said) };
  }
}

/** The completion that a handler's return value means. */
export function completionOf(reply: TaskReply): Outcome {
  if (reply === undefined) return { act: "complete", request: {} };
  if (typeof reply === "string") return { act: "complete", request: saidRequest(reply) };
  const { artifacts, resultStatus, plain } = reply;
  const request: TaskCompleteRequest = {
    ...saidRequest(reply),
    // Named here and not at each try, so that a repeated completion is the same completion.
    ...(artifacts === undefined ? {} : { artifacts: artifacts.map(withArtifactId) }),
    ...(resultStatus === undefined ? {} : { result_status: resultStatus }),
    ...(plain === undefined ? {} : { plain }),
  };
  return { act: "complete", request };
}
