import {
  type ArtifactInput,
  type Message,
  type MessageInput,
  type Part,
  RelayError,
  type RelayErrorCode,
  type TaskView,
} from "@a2a-relay/protocol";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMail } from "./leased-mail.ts";
import { type Outcome, reasonText } from "./outcome.ts";
import type { RelayClient } from "./relay-client.ts";
import { withArtifactId, withIdempotencyKey } from "./repeatable.ts";
import { isAway } from "./until-reached.ts";

/** What a task handler may return: the answer's text, or more than text. Nothing is an answer without text. */
export type TaskReply = string | TaskReplyParts | undefined | void;

export interface TaskReplyParts {
  readonly text?: string | undefined;
  readonly parts?: readonly Part[] | undefined;
  readonly artifacts?: readonly ArtifactInput[] | undefined;
  /** `partial` says that the task is completed as far as it could be. Default `ok`. */
  readonly resultStatus?: "ok" | "partial" | undefined;
}

export interface AgentTaskParts {
  readonly client: RelayClient;
  readonly agentId: string;
  readonly errors: BackgroundErrors;
  readonly mail: LeasedMail;
  /** The task as it stood when its mail was taken. */
  readonly view: TaskView;
  /** Takes what the handler decides without returning it; that wins over what it returns. */
  readonly decide: (outcome: Outcome) => void;
}

/** A task in the hands of its handler. */
export class AgentTask {
  readonly #parts: AgentTaskParts;

  constructor(parts: AgentTaskParts) {
    this.#parts = parts;
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

  /**
   * Tells the requester how far the work is. A relay that is away does not stop the work: the report is
   * dropped and `onError` hears of it. Throws when the work is to stop, as `signal` says too.
   */
  async working(text?: string): Promise<void> {
    const { client, errors, mail } = this.#parts;
    const request = { state: "working", ...(text === undefined ? {} : { text }) } as const;
    try {
      await this.#guard(client.reportStatus(this.id, { ...request, ...this.#lease }, mail));
    } catch (reason) {
      if (this.signal.aborted || !isAway(reason)) throw reason;
      errors.report(reason, "report");
    }
  }

  /** Puts an artifact, or with `append` adds parts to the one of the same id. Answers with its id. */
  async addArtifact(
    artifact: ArtifactInput,
    options: { readonly append?: boolean | undefined } = {},
  ): Promise<string> {
    const { client, mail } = this.#parts;
    const named = withArtifactId(artifact);
    const append = options.append === true ? { append: true } : {};
    await this.#guard(client.addArtifact(this.id, { artifact: named, ...append, ...this.#lease }, mail));
    return named.artifactId ?? named.artifact_id ?? "";
  }

  /**
   * Asks the requester and ends this turn: the handler should return now. The answer comes to the same
   * handler as a new turn with `isFollowUp`, perhaps in another process of this agent.
   */
  askInput(text: string): void {
    const question = { ...this.#letter(this.requester, text), type: "reply", needs_reply: true } as const;
    this.#parts.decide({ act: "ask", message: withIdempotencyKey(question) });
  }

  /** Declines the task before any of it is done. Takes effect when the handler returns. */
  reject(reason: string): void {
    this.#parts.decide({ act: "reject", reason: reasonText(reason) });
  }

  /** Gives up on the task, as a thrown error does. Takes effect when the handler returns. */
  fail(reason: string): void {
    this.#parts.decide({ act: "fail", reason: reasonText(reason) });
  }

  /** Passes the task on to another agent; its result will go to the same requester. Takes effect at the end. */
  handOff(to: string, text: string): void {
    const handoff = { ...this.#letter(to, text), type: "handoff" } as const;
    this.#parts.decide({ act: "hand_over", message: withIdempotencyKey(handoff) });
  }

  #letter(to: string, body: string): MessageInput {
    return { from: this.#parts.agentId, to, task_id: this.id, reply_to: this.message.id, body };
  }

  get #lease(): { readonly lease_id: string } {
    return { lease_id: this.#parts.mail.item.lease.id };
  }

  /** A refusal that means the end of the work is the end of the work, also for whoever watches `signal`. */
  async #guard(report: Promise<unknown>): Promise<void> {
    try {
      await report;
    } catch (reason) {
      if (reason instanceof RelayError && END_CODES.has(reason.code)) this.#parts.mail.lose(reason);
      throw reason;
    }
  }
}

const END_CODES: ReadonlySet<RelayErrorCode> = new Set(["lease_lost", "task_canceled", "task_finished"]);

/** The completion that a handler's return value means. */
export function completionOf(reply: TaskReply): Outcome {
  if (reply === undefined) return { act: "complete", request: {} };
  if (typeof reply === "string") return { act: "complete", request: { text: reply } };
  const { text, parts, artifacts, resultStatus } = reply;
  return {
    act: "complete",
    request: {
      ...(text === undefined ? {} : { text }),
      ...(parts === undefined ? {} : { parts: [...parts] }),
      // Named here and not at each try, so that a repeated completion is the same completion.
      ...(artifacts === undefined ? {} : { artifacts: artifacts.map(withArtifactId) }),
      ...(resultStatus === undefined ? {} : { result_status: resultStatus }),
    },
  };
}
