import type {
  A2aMessage,
  A2aTask,
  ArtifactInput,
  Message,
  MessageInput,
  RelayError,
  TaskCompleteRequest,
  TaskStatusRequest,
  TaskView,
} from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { withArtifactId, withIdempotencyKey } from "../http/idempotency.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import { ArtifactBatches, type ArtifactPieces } from "./artifact-batches.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";
import type { Outcome } from "./settlement.ts";
import {
  askedOverA2a,
  type AskedOverA2a,
  reasonRequest,
  type Said,
  saidMessageInput,
  type SaidParts,
  saidRequest,
} from "./task-content.ts";
import { TaskReports } from "./task-reports.ts";

/** What a task handler may return: the text of the answer, or more. Undefined is an answer without text. */
export type TaskReply = string | TaskReplyParts | undefined | void;

export interface TaskReplyParts extends SaidParts {
  readonly artifacts?: readonly ArtifactInput[] | undefined;
  /** `partial`: the task was completed as far as possible. Default `ok`. */
  readonly resultStatus?: "ok" | "partial" | undefined;
  /** A waiting A2A caller gets a plain message instead of the task. */
  readonly plain?: boolean | undefined;
}

export interface AddArtifactOptions {
  /** Appends the parts to the artifact with the same id instead of replacing it. */
  readonly append?: boolean | undefined;
  /** The artifact is complete. Default: true without `append`. */
  readonly lastChunk?: boolean | undefined;
  /** A2A metadata of this update, not of the artifact. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface AgentTaskParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly leased: LeasedMessage;
  /** The task at the time its message was leased. */
  readonly view: TaskView;
  /** Takes the decision of the handler; it wins over the returned value. */
  readonly decide: (outcome: Outcome) => void;
}

/** A task, as its handler uses it. */
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

  /** The task at the time its message was leased: deadline, parent, artifacts so far, handoffs. */
  get view(): TaskView {
    return this.#parts.view;
  }

  /** The request, the handoff, or a follow-up of the requester. */
  get message(): Message {
    return this.#parts.leased.item.message;
  }

  /** The same message as A2A 1.0, from any wire or dialect. */
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

  /** How often this message was leased; more than 1 means that another run began before. */
  get attempt(): number {
    return this.#parts.leased.item.lease.attempt;
  }

  /** True when the message continues a task of this agent, such as the answer to a question. */
  get isFollowUp(): boolean {
    return this.#parts.view.message_id !== this.#parts.leased.item.message_id;
  }

  /**
   * Aborted with a RelayError when the work should stop: `lease_lost`, `task_canceled`, another code when the task
   * ended without this worker (its deadline passed), or `unavailable` when this agent is stopping.
   */
  get signal(): AbortSignal {
    return this.#parts.leased.signal;
  }

  /** The current task as its A2A caller sees it: with status, artifacts and history. */
  async a2aTask(): Promise<A2aTask> {
    const { client, agentId, delays, errors } = this.#parts;
    const { signal } = this;
    const onAway = (error: RelayError): void => errors.report(error, "task");
    const getTask = (): Promise<A2aTask> => client.a2a(agentId).getTask(this.id, { signal });
    return untilReached(getTask, { signal, delays, onAway });
  }

  /** The messages of both sides so far, oldest first. */
  async history(): Promise<readonly A2aMessage[]> {
    return (await this.a2aTask()).history ?? [];
  }

  /**
   * Reports progress to the requester. While the relay is unreachable, the report is dropped and passed to `onError`.
   * Throws when the work should stop, as `signal` tells too.
   */
  async working(said?: Said): Promise<void> {
    await this.#reports.tryStatus({ state: "working", ...saidRequest(said) });
  }

  /**
   * Reports a state of the task without ending the turn: for work that waits for something outside, such as an
   * authorisation, or that `endTurn` ends. Waits for an unreachable relay.
   */
  async report(state: TaskStatusRequest["state"], said?: Said): Promise<void> {
    await this.#reports.status({ state, ...saidRequest(said) });
  }

  /**
   * Adds an artifact, or with `append` adds parts to the one with the same id. Resolves with its id. Waits for an
   * unreachable relay; each call takes effect once, in the order of the calls.
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
   * Adds an artifact piece by piece, such as the output of a language model. Pieces that come within a short time are
   * sent together. Resolves with the artifact's id after the last piece.
   */
  async streamArtifact(artifact: Omit<ArtifactInput, "parts">, pieces: ArtifactPieces): Promise<string> {
    const named = withArtifactId({ ...artifact, parts: [] });
    let append = false;
    for await (const { parts, isLast } of ArtifactBatches.of(pieces, this)) {
      // An artifact needs at least one part, and its readers wait for the last one.
      const some = parts.length === 0 ? [{ text: "" }] : [...parts];
      await this.addArtifact({ ...named, parts: some }, { append, lastChunk: isLast });
      append = true;
    }
    return named.artifactId ?? named.artifact_id ?? "";
  }

  /** Whether the task has an artifact with this id, from this turn or an earlier one. */
  hasArtifact(artifactId: string): boolean {
    return this.#reports.hasArtifact(artifactId);
  }

  /**
   * Asks the requester and ends this turn: the handler should return now. The answer comes as a new turn with
   * `isFollowUp`, perhaps in another process of this agent.
   */
  askInput(question: Said): void {
    const message = { ...this.#message(this.requester, question), type: "reply", needs_reply: true } as const;
    this.#parts.decide({ act: "ask", message: withIdempotencyKey(message) });
  }

  /** Like `askInput`, for an authorisation. */
  askAuth(request: Said): void {
    const message = { ...this.#message(this.requester, request), type: "status", needs_reply: true } as const;
    this.#parts.decide({
      act: "ask",
      message: withIdempotencyKey({ ...message, task_state: "auth-required" }),
    });
  }

  /** Ends this turn and not the task, after `report` told the requester what the task waits for. */
  endTurn(): void {
    this.#parts.decide({ act: "acknowledge" });
  }

  /**
   * Completes the task with a plain message, which a waiting A2A caller gets instead of the task.
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

  /** Hands the task to another agent; its result goes to the same requester. Takes effect when the handler returns. */
  handOff(to: string, said: Said): void {
    const handoff = { ...this.#message(to, said), type: "handoff" } as const;
    this.#parts.decide({ act: "hand_over", message: withIdempotencyKey(handoff) });
  }

  #message(to: string, said: Said): MessageInput {
    const about = { from: this.#parts.agentId, to, task_id: this.id, reply_to: this.message.id };
    return { ...about, ...saidMessageInput(said) };
  }
}

/** The completion for a handler's return value. */
export function completionOf(reply: TaskReply): Outcome {
  if (reply === undefined) return { act: "complete", request: {} };
  if (typeof reply === "string") return { act: "complete", request: saidRequest(reply) };
  const { artifacts, resultStatus, plain } = reply;
  const request: TaskCompleteRequest = {
    ...saidRequest(reply),
    // The ids are made once, so that a repeated completion is the same completion.
    ...(artifacts === undefined ? {} : { artifacts: artifacts.map(withArtifactId) }),
    ...(resultStatus === undefined ? {} : { result_status: resultStatus }),
    ...(plain === undefined ? {} : { plain }),
  };
  return { act: "complete", request };
}
