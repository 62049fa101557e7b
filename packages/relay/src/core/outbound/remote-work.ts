import { A2aError, isTerminal, LIMITS, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { agentOf, operatorOf } from "../access/principal.ts";
import { type ClaimedWork, ClaimLost } from "../mechanisms/own-claims.ts";
import { REMOTE_TASKS_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { type Outbound, RemoteFailure } from "../ports/outbound.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { RemoteAnswer, RemoteTask, TimedRemoteTask } from "../ports/remote-tasks.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskService } from "../tasks/task-service.ts";
import {
  type DueWork,
  nextPollAtMs,
  nextPollRetryAtMs,
  POLL_FAILURES_MAX,
  POLL_MISSES_MAX,
} from "./outbound-schedule.ts";
import { HISTORY_LENGTH } from "./remote-message.ts";
import { chooseDuePolls } from "./remote-polls.ts";
import {
  HalfRecorded,
  type PolledTask,
  type RecordedTask,
  RemoteRecord,
  UnknownState,
} from "./remote-record.ts";

export interface RemoteWorkParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly outbound: Outbound;
  readonly tasks: TaskService;
}

/** What a poll changes of a remote task. */
type After = Partial<Omit<RemoteTask, "tenant" | "taskId" | "version">>;

/** Our task is over whether or not the agent learns of it. */
const CANCEL_FAILURES_MAX = 5;
/** A retry would be refused too. */
const PERMANENT_CODES: ReadonlySet<RelayErrorCode> = new Set([
  "invalid_argument",
  "too_large",
  "permission_denied",
]);
const OVER: After = { answer: null, nextAtMs: null };

/**
 * Polls remote tasks until they end: `chooseDue` → `poll`, which records the outcome and the time of the next poll. All
 * state is in the store, so that another process can continue at any step. The caller has claimed the remote task; once
 * the claim is lost, nothing more is recorded (`ClaimLost`).
 */
export class RemoteWork {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #tasks: TaskService;
  readonly #outbound: Outbound;
  readonly #record: RemoteRecord;

  constructor(parts: RemoteWorkParts) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#tasks = parts.tasks;
    this.#outbound = parts.outbound;
    this.#record = new RemoteRecord(parts);
  }

  watch(): Watch {
    return this.#store.feed.watch(REMOTE_TASKS_TOPIC, { isOwn: true });
  }

  /** Chooses remote tasks to poll now, beside those under way. */
  chooseDue(underWay: Iterable<TimedRemoteTask>): Promise<DueWork<TimedRemoteTask>> {
    return chooseDuePolls(this.#store, underWay, this.#clock.nowMs());
  }

  /** Asks the agent for its task and records the answer and the next poll. */
  async poll(
    { tenant, taskId }: Pick<RemoteTask, "tenant" | "taskId">,
    { claim, signal }: ClaimedWork,
  ): Promise<void> {
    const stored = await this.#store.remoteTasks.get(tenant, taskId);
    // Another process may have polled it between the choice and the claim.
    if (stored?.nextAtMs == null || stored.nextAtMs > this.#clock.nowMs()) return;
    const remote = { ...stored, claim };
    const [ours] = await this.#store.tasks.get(tenant, [taskId]);
    if (ours === undefined) return this.#save(remote, OVER);
    if (isTerminal(ours.state) || ours.assignee !== remote.agentId) return this.#cancel(remote, ours, signal);
    try {
      await this.#save(remote, await this.#follow(remote, ours, signal));
    } catch (reason) {
      // A request that the relay itself cut off is no failure of the agent.
      if (signal.aborted) return;
      if (reason instanceof RemoteFailure) return this.#failed(remote, reason);
      // Keeps the digest, so that a recorded question is not recorded again.
      const { statusDigest } = reason instanceof HalfRecorded ? reason : remote;
      const cause = reason instanceof HalfRecorded ? reason.cause : reason;
      if (cause instanceof ClaimLost) throw cause;
      await this.#notRecorded({ ...remote, statusDigest }, RelayError.from(cause));
    }
  }

  async #follow(remote: PolledTask, ours: TaskRecord, signal: AbortSignal): Promise<After> {
    const { answer, remoteTaskId } = remote;
    if (answer !== null) return this.#answered(remote, ours, answer);
    if (remoteTaskId === null) return OVER;
    const asked = { id: remoteTaskId, historyLength: HISTORY_LENGTH };
    const theirs = await this.#outbound.getTask(remote, asked, signal);
    return this.#after(remote, await this.#record.task(remote, ours, theirs));
  }

  async #answered(remote: PolledTask, ours: TaskRecord, answer: RemoteAnswer): Promise<After> {
    if ("refused" in answer) {
      await this.#giveUp(remote, answer.refused);
      return OVER;
    }
    if ("task" in answer) return this.#after(remote, await this.#record.task(remote, ours, answer.task));
    if (remote.remoteTaskId === null) {
      await this.#record.message(remote, answer.message);
      return OVER;
    }
    await this.#record.remark(remote, answer.message);
    return this.#after(remote, { isNews: true, isOver: false, statusDigest: remote.statusDigest });
  }

  #after(remote: RemoteTask, { isNews, isOver, statusDigest }: RecordedTask): After {
    const nowMs = this.#clock.nowMs();
    const changedAtMs = isNews ? nowMs : remote.changedAtMs;
    const nextAtMs = isOver ? null : nextPollAtMs({ changedAtMs }, nowMs);
    return { answer: null, statusDigest, changedAtMs, nextAtMs, failures: 0, misses: 0 };
  }

  async #failed(remote: PolledTask, failure: RemoteFailure): Promise<void> {
    const { isNotFound } = failure;
    const misses = isNotFound ? remote.misses + 1 : remote.misses;
    const failures = isNotFound ? remote.failures : remote.failures + 1;
    const why = whyGivenUp(failure, { misses, failures });
    if (why === undefined) {
      const nextAtMs = nextPollRetryAtMs(misses + failures, this.#clock.nowMs());
      // The unusable answer is dropped: the next poll asks the agent.
      return this.#save(remote, { answer: null, misses, failures, nextAtMs });
    }
    const hasFailed = await this.#giveUp(remote, why);
    // The agent may still work on the task: the next poll cancels it there.
    if (hasFailed && failure instanceof UnknownState) return;
    await this.#save(remote, OVER);
  }

  /**
   * Our task did not accept what the agent said: for good, or only while another caller holds the task, or between the
   * task's deadline and the sweep that fails it.
   */
  async #notRecorded(remote: PolledTask, error: RelayError): Promise<void> {
    const failures = remote.failures + 1;
    const isLast = failures >= POLL_FAILURES_MAX;
    let trouble = error;
    if (PERMANENT_CODES.has(error.code) || isLast) {
      try {
        // The next poll cancels the task at the agent.
        if (await this.#giveUp(remote, `what the agent answered cannot be kept: ${error.message}`)) return;
      } catch (reason) {
        if (reason instanceof ClaimLost) throw reason;
        trouble = RelayError.from(reason);
      }
    }
    const later = { failures, nextAtMs: nextPollRetryAtMs(failures, this.#clock.nowMs()) };
    await this.#save(remote, isLast ? OVER : later);
    if (trouble.code === "internal") throw trouble;
  }

  /** True when this failed our task; false when it was over already. */
  async #giveUp({ tenant, taskId, agentId, claim }: PolledTask, why: string): Promise<boolean> {
    const reason = why.slice(0, LIMITS.reasonCharsMax).toWellFormed();
    const tasks = this.#tasks.under(claim);
    try {
      await tasks.fail(agentOf(tenant, agentId), taskId, { reason });
    } catch (cause) {
      const { code } = RelayError.from(cause);
      if (code === "task_finished" || code === "task_canceled") return false;
      if (code !== "permission_denied") throw cause;
      // The requester must not wait for ever for an agent that may not answer.
      await tasks.fail(operatorOf(tenant), taskId, { reason });
    }
    return true;
  }

  /** Our task is over or has another assignee: cancels the agent's task if it failed or was canceled here. */
  async #cancel(remote: PolledTask, ours: TaskRecord, signal: AbortSignal): Promise<void> {
    const { remoteTaskId } = remote;
    const isUnwanted = ours.state === "canceled" || ours.state === "failed";
    if (remoteTaskId === null || !isUnwanted || ours.assignee !== remote.agentId)
      return this.#save(remote, OVER);
    try {
      await this.#outbound.cancelTask(remote, { id: remoteTaskId }, signal);
    } catch (reason) {
      if (!(reason instanceof RemoteFailure)) throw reason;
      if (signal.aborted) return;
      const failures = remote.failures + 1;
      if (reason.kind !== "refused" && failures < CANCEL_FAILURES_MAX) {
        const nextAtMs = nextPollRetryAtMs(failures, this.#clock.nowMs());
        return this.#save(remote, { answer: null, failures, nextAtMs });
      }
    }
    await this.#save(remote, OVER);
  }

  /** A lost race is fine: a newer version holds a newer answer, and the next poll reads it. */
  async #save({ claim, ...remote }: PolledTask, after: After): Promise<void> {
    const { tenant } = remote;
    const remoteTasks = [{ ...remote, ...after }];
    await this.#store.commit({ tenant, claims: [claim], remoteTasks, events: [] });
  }
}

function whyGivenUp(
  failure: RemoteFailure,
  { misses, failures }: Pick<RemoteTask, "misses" | "failures">,
): string | undefined {
  const { reason, error } = failure;
  if (misses >= POLL_MISSES_MAX) return `the agent no longer knows the task: ${reason}`;
  if (error instanceof A2aError && ["MethodNotFound", "UnsupportedOperation"].includes(error.a2a)) {
    return `the agent does not tell what became of the task: ${reason}`;
  }
  if (failures < POLL_FAILURES_MAX) return undefined;
  if (failure instanceof UnknownState)
    return `what became of the task was not to be learnt for an hour: ${reason}`;
  return `the agent could not be asked for an hour what became of the task: ${reason}`;
}
