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

export interface MailHandlers {
  task?: TaskHandler;
  message?: MessageHandler;
}

export interface MailWorkerParts extends SettlementParts {
  readonly renewal: LeaseRenewal;
  readonly awaited: AwaitedResults;
  /** Read for each message, since a handler may be set after the worker was made. */
  readonly handlers: Readonly<MailHandlers>;
  /** Whether this worker takes up again what it had begun when it was ended. */
  readonly resumes: boolean;
}

/** Work at which its worker was ended so often is what ends it, or is too long for the time between restarts. */
const ATTEMPTS_MAX = 10;

/** Takes one leased message through its handler to its outcome. */
export class MailWorker {
  readonly #parts: MailWorkerParts;
  readonly #settlement: Settlement;
  /** The last in line for each task, or for each message that belongs to none. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(parts: MailWorkerParts) {
    this.#parts = parts;
    this.#settlement = new Settlement(parts);
  }

  /** Never rejects. The lease is kept alive until the relay knows the outcome. */
  async work(item: LeasedItem): Promise<void> {
    const mail = new LeasedMessage(item);
    this.#parts.renewal.hold(mail);
    try {
      await this.#inTurn(mail);
    } catch (reason) {
      await this.#giveBack(mail, reason);
    } finally {
      this.#parts.renewal.drop(mail);
    }
  }

  /** The relay would not say what the mail is about: it gets time to get over that, then its mail back. */
  async #giveBack(mail: LeasedMessage, reason: unknown): Promise<void> {
    const { delays, errors, signal } = this.#parts;
    if (signal.aborted) return;
    errors.report(reason, "task");
    await pause(delays.maxMs, { signal }).catch(() => undefined);
    await this.#settlement.settle(mail, { act: "release" });
  }

  /**
   * One handler at a time for each task: what a requester adds waits until the turn before has ended. The
   * same goes for a message that comes again while its handler still runs under a lost lease.
   */
  async #inTurn(mail: LeasedMessage): Promise<void> {
    const line = mail.item.task_id ?? mail.item.message_id;
    const before = this.#turns.get(line);
    // Such a notice is about the very work that is in line before it, so it does not wait for its end.
    if (before !== undefined && isCanceledNotice(mail.item)) return this.#heedCancel(mail);
    const turn = before === undefined ? this.#handle(mail) : this.#handleAfter(before, mail);
    // What waits in line must not fail because of what went before it.
    const ended = turn.catch(() => undefined);
    this.#turns.set(line, ended);
    try {
      await turn;
    } finally {
      if (this.#turns.get(line) === ended) this.#turns.delete(line);
    }
  }

  /** The renewal hears what the relay has to say about the work, and aborts its signal. */
  async #heedCancel(mail: LeasedMessage): Promise<void> {
    await this.#parts.renewal.renewNow();
    await this.#settlement.settle(mail, { act: "acknowledge" });
  }

  async #handleAfter(before: Promise<void>, mail: LeasedMessage): Promise<void> {
    await before;
    // The turn before may have finished the task, and this mail with it.
    await this.#parts.renewal.renewNow();
    if (!mail.signal.aborted) await this.#handle(mail);
  }

  async #handle(mail: LeasedMessage): Promise<void> {
    const known = this.#parts.finished.outcome(mail.item.message_id);
    const outcome = known ?? (await this.#outcomeOf(mail));
    if (outcome !== undefined) await this.#settlement.settle(mail, outcome);
  }

  async #outcomeOf(mail: LeasedMessage): Promise<Outcome | undefined> {
    if (this.#parts.awaited.accept(mail.item)) return { act: "acknowledge" };
    const view = await this.#taskOf(mail);
    if (view === undefined) return this.#runMessage(mail);
    // Finished while its mail was on the way: there is nothing left to do.
    if (isTerminal(view.state)) return { act: "acknowledge" };
    return this.#runTask(mail, view);
  }

  /** The task that this mail wants this agent to work on; undefined when it only brings news. */
  async #taskOf(mail: LeasedMessage): Promise<TaskView | undefined> {
    const { client, agentId, delays, errors, signal } = this.#parts;
    const { task_id: taskId, message, sender_agent_id: sender } = mail.item;
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

  async #runTask(mail: LeasedMessage, view: TaskView): Promise<Outcome | undefined> {
    const { handlers, errors } = this.#parts;
    if (handlers.task === undefined)
      return { act: "reject", request: { reason: "this agent takes no tasks" } };
    const { attempt } = mail.item.lease;
    if (this.#parts.resumes && attempt > ATTEMPTS_MAX) {
      const reason = `the agent was ended in the middle of this work ${attempt - 1} times`;
      return { act: "fail", request: { reason } };
    }
    let decided: Outcome | undefined;
    const decide = (outcome: Outcome): void => {
      decided = outcome;
    };
    try {
      const reply = await handlers.task(new AgentTask({ ...this.#parts, mail, view, decide }));
      // Even with the lease lost: if nobody took the work over, the relay still accepts its result.
      return isCanceled(mail) ? undefined : (decided ?? completionOf(reply));
    } catch (reason) {
      if (mail.signal.aborted)
        return this.#outcomeOfAborted(mail, (why) => ({ act: "fail", request: { reason: why } }));
      errors.report(reason, "task");
      return { act: "fail", request: { reason: reasonText(reason) } };
    }
  }

  async #runMessage(mail: LeasedMessage): Promise<Outcome | undefined> {
    const { handlers, errors } = this.#parts;
    if (handlers.message === undefined) {
      if (this.#parts.awaited.isAsked(mail.item)) return { act: "acknowledge" };
      const { type, from, id } = mail.item.message;
      const text = `${type} ${id} from ${from} was acknowledged unread: this agent has no onMessage handler`;
      errors.report(new Error(text), "message");
      return { act: "acknowledge" };
    }
    try {
      await handlers.message(new AgentMessage({ ...this.#parts, mail }));
      return { act: "acknowledge" };
    } catch (reason) {
      if (mail.signal.aborted)
        return this.#outcomeOfAborted(mail, (why) => ({ act: "fail_message", reason: why }));
      errors.report(reason, "message");
      return { act: "fail_message", reason: reasonText(reason) };
    }
  }

  /** A handler that was told to stop and did so leaves nothing behind, unless it was this agent that stopped. */
  #outcomeOfAborted(mail: LeasedMessage, fail: (why: string) => Outcome): Outcome | undefined {
    if (!(mail.signal.reason instanceof AgentStopping)) return undefined;
    // Work that may be done twice is done by another; of other work nobody can say how far it came.
    if (this.#parts.resumes || isIdempotent(mail.item)) return { act: "release" };
    return fail("the agent was stopped in the middle of this work");
  }
}

/** Why the signal of unfinished work is aborted when its agent stops. */
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

function isCanceled(mail: LeasedMessage): boolean {
  const reason: unknown = mail.signal.reason;
  return reason instanceof RelayError && reason.code === "task_canceled";
}

function isCanceledNotice(item: LeasedItem): boolean {
  return item.sender_agent_id === POSTMASTER && item.message["task_state"] === "canceled";
}
