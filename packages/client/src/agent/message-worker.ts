import { isTerminal, POSTMASTER, RelayError, type TaskView } from "@a2a-relay/protocol";
import { pause } from "../http/abort.ts";
import { untilReached } from "../http/retry.ts";
import { AgentMessage } from "./agent-message.ts";
import { AgentTask, completionOf, type TaskReply } from "./agent-task.ts";
import { type LeasedItem, LeasedMessage, type LeaseRenewal } from "./lease-renewal.ts";
import { type Outcome, reasonText, Settlement, type SettlementParts } from "./settlement.ts";
import type { AwaitedResults } from "./task-request.ts";

export type TaskHandler = (task: AgentTask) => TaskReply | Promise<TaskReply>;
export type MessageHandler = (message: AgentMessage) => unknown;

export interface MessageHandlers {
  task?: TaskHandler;
  message?: MessageHandler;
}

export interface MessageWorkerParts extends SettlementParts {
  readonly renewal: LeaseRenewal;
  readonly awaited: AwaitedResults;
  /** Read for each message, because handlers may be set later. */
  readonly handlers: Readonly<MessageHandlers>;
  /** Whether this worker resumes work that it had begun before it was stopped or killed. */
  readonly resumes: boolean;
}

/** After this many attempts the work itself probably crashes its worker. */
const ATTEMPTS_MAX = 10;

/** Runs the handler of one leased message and settles its outcome. */
export class MessageWorker {
  readonly #parts: MessageWorkerParts;
  readonly #settlement: Settlement;
  /** The last run for each task, or for each message without a task. */
  readonly #lastRuns = new Map<string, Promise<void>>();

  constructor(parts: MessageWorkerParts) {
    this.#parts = parts;
    this.#settlement = new Settlement(parts);
  }

  /** Never rejects. Renews the lease until the relay knows the outcome. */
  async work(item: LeasedItem): Promise<void> {
    const leased = new LeasedMessage(item);
    this.#parts.renewal.hold(leased);
    try {
      await this.#inOrder(leased);
    } catch (reason) {
      await this.#giveBack(leased, reason);
    } finally {
      this.#parts.renewal.drop(leased);
    }
  }

  /** The relay could not read the task: wait, then release the message. */
  async #giveBack(leased: LeasedMessage, reason: unknown): Promise<void> {
    const { delays, errors, signal } = this.#parts;
    if (signal.aborted) return;
    errors.report(reason, "task");
    await pause(delays.maxMs, { signal }).catch(() => undefined);
    await this.#settlement.settle(leased, { act: "release" });
  }

  /**
   * Runs one handler at a time for each task: a follow-up message waits until the previous run has ended. So does a
   * message that is delivered again while its handler still runs under a lost lease.
   */
  async #inOrder(leased: LeasedMessage): Promise<void> {
    const key = leased.item.task_id ?? leased.item.message_id;
    const previous = this.#lastRuns.get(key);
    // This notice is about the running work, so it must not wait for its end.
    if (previous !== undefined && isCanceledNotice(leased.item)) return this.#cancelWork(leased);
    const run = previous === undefined ? this.#handle(leased) : this.#handleAfter(previous, leased);
    // A failed run must not fail the next one.
    const ended = run.catch(() => undefined);
    this.#lastRuns.set(key, ended);
    try {
      await run;
    } finally {
      if (this.#lastRuns.get(key) === ended) this.#lastRuns.delete(key);
    }
  }

  /** The renewal learns that the task was canceled, and aborts the signal of the running work. */
  async #cancelWork(leased: LeasedMessage): Promise<void> {
    await this.#parts.renewal.renewNow();
    await this.#settlement.settle(leased, { act: "acknowledge" });
  }

  async #handleAfter(previous: Promise<void>, leased: LeasedMessage): Promise<void> {
    await previous;
    // The previous run may have finished the task, and this message with it.
    await this.#parts.renewal.renewNow();
    if (!leased.signal.aborted) await this.#handle(leased);
  }

  async #handle(leased: LeasedMessage): Promise<void> {
    const decided = this.#parts.unconfirmed.outcome(leased.item.message_id);
    const outcome = decided ?? (await this.#outcomeOf(leased));
    if (outcome !== undefined) await this.#settlement.settle(leased, outcome);
  }

  async #outcomeOf(leased: LeasedMessage): Promise<Outcome | undefined> {
    if (this.#parts.awaited.accept(leased.item)) return { act: "acknowledge" };
    const view = await this.#taskOf(leased);
    if (view === undefined) return this.#runMessage(leased);
    // The task finished before its message arrived.
    if (isTerminal(view.state)) return { act: "acknowledge" };
    return this.#runTask(leased, view);
  }

  /** The task that this agent has to work on; undefined when the message asks for no work. */
  async #taskOf(leased: LeasedMessage): Promise<TaskView | undefined> {
    const { client, agentId, delays, errors, signal } = this.#parts;
    const { task_id: taskId, message, sender_agent_id: sender } = leased.item;
    if (taskId === undefined || sender === POSTMASTER) return undefined;
    if (message.type === "status" || message.type === "memory") return undefined;
    const onAway = (error: RelayError): void => errors.report(error, "task");
    try {
      const task = await untilReached(() => client.task(taskId, { signal }), { signal, delays, onAway });
      return task.assignee === agentId ? task : undefined;
    } catch (reason) {
      if (reason instanceof RelayError && reason.code === "not_found") return undefined;
      throw reason;
    }
  }

  async #runTask(leased: LeasedMessage, view: TaskView): Promise<Outcome | undefined> {
    const { handlers, errors } = this.#parts;
    if (handlers.task === undefined)
      return { act: "reject", request: { reason: "this agent takes no tasks" } };
    const { attempt } = leased.item.lease;
    if (this.#parts.resumes && attempt > ATTEMPTS_MAX) {
      const reason = `the agent was ended in the middle of this work ${attempt - 1} times`;
      return { act: "fail", request: { reason } };
    }
    let decided: Outcome | undefined;
    const decide = (outcome: Outcome): void => {
      decided = outcome;
    };
    try {
      const reply = await handlers.task(new AgentTask({ ...this.#parts, leased, view, decide }));
      // Also with the lease lost: unless another worker took over, the relay still accepts the result.
      return isCanceled(leased) ? undefined : (decided ?? completionOf(reply));
    } catch (reason) {
      if (leased.signal.aborted)
        return this.#outcomeOfAborted(leased, (why) => ({ act: "fail", request: { reason: why } }));
      errors.report(reason, "task");
      return { act: "fail", request: { reason: reasonText(reason) } };
    }
  }

  async #runMessage(leased: LeasedMessage): Promise<Outcome | undefined> {
    const { handlers, errors } = this.#parts;
    if (handlers.message === undefined) {
      if (this.#parts.awaited.isAsked(leased.item)) return { act: "acknowledge" };
      const { type, from, id } = leased.item.message;
      const text = `${type} ${id} from ${from} was acknowledged unread: this agent has no onMessage handler`;
      errors.report(new Error(text), "message");
      return { act: "acknowledge" };
    }
    try {
      await handlers.message(new AgentMessage({ ...this.#parts, leased }));
      return { act: "acknowledge" };
    } catch (reason) {
      if (leased.signal.aborted)
        return this.#outcomeOfAborted(leased, (why) => ({ act: "fail_message", reason: why }));
      errors.report(reason, "message");
      return { act: "fail_message", reason: reasonText(reason) };
    }
  }

  /** An aborted handler has no outcome, unless this agent is stopping. */
  #outcomeOfAborted(leased: LeasedMessage, fail: (why: string) => Outcome): Outcome | undefined {
    if (!(leased.signal.reason instanceof AgentStopping)) return undefined;
    // Only idempotent work may be repeated: it is unknown how far the handler came.
    if (this.#parts.resumes || isIdempotent(leased.item)) return { act: "release" };
    return fail("the agent was stopped in the middle of this work");
  }
}

/** The abort reason of unfinished work when its agent stops. */
export class AgentStopping extends RelayError {
  constructor() {
    super("unavailable", "this agent is stopping");
  }
}

function isIdempotent(item: LeasedItem): boolean {
  const idempotency = item.message["idempotency"];
  return (
    typeof idempotency === "object" &&
    idempotency !== null &&
    "duplicate_safety" in idempotency &&
    idempotency.duplicate_safety === "idempotent"
  );
}

function isCanceled(leased: LeasedMessage): boolean {
  const reason: unknown = leased.signal.reason;
  return reason instanceof RelayError && reason.code === "task_canceled";
}

function isCanceledNotice(item: LeasedItem): boolean {
  return item.sender_agent_id === POSTMASTER && item.message["task_state"] === "canceled";
}
