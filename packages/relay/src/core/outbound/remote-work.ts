import {
  A2aError,
  type A2aTask,
  isTerminal,
  LIMITS,
  RelayError,
  type RelayErrorCode,
} from "@a2a-relay/protocol";
import { agentOf, operatorOf } from "../access/principal.ts";
import { REMOTE_TASKS_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { Outbound } from "../ports/outbound-http.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { RemoteCalls, RemoteFailure, type RemoteSettings } from "./remote-calls.ts";
import { RemotePolls } from "./remote-polls.ts";
import { HISTORY_LENGTH } from "./remote-message.ts";
import { HalfRecorded, type Recorded, RemoteRecord, UnknownState } from "./remote-record.ts";
import { LOOK_FAILURES_MAX, LOOK_MISSES_MAX, nextPollAtMs, nextRetryAtMs } from "./outbound-schedule.ts";
import type { RemoteAnswer, RemoteTask, TimedRemoteTask } from "../ports/remote-tasks.ts";

export interface RemoteWorkParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly outbound: Outbound;
  readonly tasks: TaskService;
}

/** What there is to look at. */
export interface RemoteAgenda {
  readonly due: readonly TimedRemoteTask[];
  /** How long nothing else falls due, unless somebody answers. */
  readonly waitMs: number;
}

/** What is written of a task elsewhere after a look at it. */
type After = Partial<Omit<RemoteTask, "tenant" | "taskId" | "version">>;

/** More than one tenant can have under way, so that there is always one to see that is not, if there is one at all. */
const TENANT_MAX = 2 * LIMITS.remotePollsMax;
/** Whether the agent hears of it or not, our task is over. */
const CANCEL_FAILURES_MAX = 5;
/** It would be refused at any other time too. */
const NEVER_KEPT: ReadonlySet<RelayErrorCode> = new Set([
  "invalid_argument",
  "too_large",
  "permission_denied",
]);
const OVER: After = { answer: null, nextAtMs: null };

/** Follows what agents elsewhere work on to its end. All of it is on disk, so that whoever comes next goes on. */
export class RemoteWork {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #tasks: TaskService;
  readonly #calls: RemoteCalls;
  readonly #record: RemoteRecord;

  constructor(parts: RemoteWorkParts, settings: RemoteSettings) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#tasks = parts.tasks;
    this.#calls = new RemoteCalls(parts.outbound, settings);
    this.#record = new RemoteRecord(parts);
  }

  watch(): Watch {
    return this.#store.feed.watch(REMOTE_TASKS_TOPIC, { isOwn: true });
  }

  /** What to look at beside what is under way. What finds no room waits for the end of one that is. */
  async agenda(underWay: Iterable<TimedRemoteTask>): Promise<RemoteAgenda> {
    const nowMs = this.#clock.nowMs();
    const looks = new RemotePolls(underWay);
    const due: TimedRemoteTask[] = [];
    for (;;) {
      const fullOrigins = looks.fullOrigins();
      const timed = await this.#store.timedRemoteTasks({ limit: TENANT_MAX, fullOrigins });
      const waiting = timed.filter((task) => !looks.has(task));
      const begun = waiting.filter((task) => {
        const isBegun = task.nextAtMs <= nowMs && looks.hasRoomFor(task);
        if (isBegun) looks.add(task);
        return isBegun;
      });
      due.push(...begun);
      // Behind those of an origin that has enough to do by now there may be others.
      if (begun.some((task) => looks.isFull(task))) continue;
      const later = waiting.map(({ nextAtMs }) => nextAtMs).filter((atMs) => atMs > nowMs);
      return { due, waitMs: Math.min(...later, Infinity) - nowMs };
    }
  }

  /** Looks what became of it and puts that on record. */
  async look({ tenant, taskId }: Pick<RemoteTask, "tenant" | "taskId">, signal: AbortSignal): Promise<void> {
    const remote = await this.#store.remoteTask(tenant, taskId);
    if (remote?.nextAtMs == null) return;
    const ours = await this.#store.task(tenant, taskId);
    if (ours === undefined) return this.#save(remote, OVER);
    if (isTerminal(ours.state) || ours.assignee !== remote.agentId) return this.#leave(remote, ours, signal);
    try {
      await this.#save(remote, await this.#follow(remote, ours, signal));
    } catch (reason) {
      // What was cut off because the relay stops says nothing of the agent.
      if (signal.aborted) return;
      if (reason instanceof RemoteFailure) return this.#failed(remote, reason);
      // A question that is on record is not asked once more.
      if (!(reason instanceof HalfRecorded)) return this.#notRecorded(remote, RelayError.from(reason));
      const { statusDigest, cause } = reason;
      await this.#notRecorded({ ...remote, statusDigest }, RelayError.from(cause));
    }
  }

  async #follow(remote: RemoteTask, ours: TaskRecord, signal: AbortSignal): Promise<After> {
    const { answer, remoteTaskId } = remote;
    if (answer !== null) return this.#answered(remote, ours, answer);
    if (remoteTaskId === null) return OVER;
    const params = { id: remoteTaskId, historyLength: HISTORY_LENGTH };
    const { result, answer: came } = await this.#calls.call(remote, "get", params, { signal });
    const theirs = result as unknown as A2aTask;
    if (typeof theirs.status?.state !== "string") {
      throw new RemoteFailure("failed", "the agent answered without a task", { answer: came });
    }
    return this.#after(remote, await this.#record.task(remote, ours, theirs));
  }

  async #answered(remote: RemoteTask, ours: TaskRecord, answer: RemoteAnswer): Promise<After> {
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

  #after(remote: RemoteTask, { isNews, isOver, statusDigest }: Recorded): After {
    const nowMs = this.#clock.nowMs();
    const changedAtMs = isNews ? nowMs : remote.changedAtMs;
    const nextAtMs = isOver ? null : nextPollAtMs({ changedAtMs }, nowMs);
    return { answer: null, statusDigest, changedAtMs, nextAtMs, failures: 0, misses: 0 };
  }

  async #failed(remote: RemoteTask, failure: RemoteFailure): Promise<void> {
    const isMissing = isNotFound(failure);
    const misses = isMissing ? remote.misses + 1 : remote.misses;
    const failures = isMissing ? remote.failures : remote.failures + 1;
    const why = whyGivenUp(failure, { misses, failures });
    if (why === undefined) {
      const nextAtMs = nextRetryAtMs(misses + failures, this.#clock.nowMs());
      // What it answered is of no use, and so it is asked the next time.
      return this.#save(remote, { answer: null, misses, failures, nextAtMs });
    }
    const hasFailed = await this.#giveUp(remote, why);
    // Whoever names a state may still be at work: it is told with the next look that nobody waits for it.
    if (hasFailed && failure instanceof UnknownState) return;
    await this.#save(remote, OVER);
  }

  /**
   * What the agent said cannot be put on record of our task: for good, or as long as somebody else holds it, or its
   * deadline has passed and nobody has said yet that it failed.
   */
  async #notRecorded(remote: RemoteTask, error: RelayError): Promise<void> {
    const failures = remote.failures + 1;
    const isLast = failures >= LOOK_FAILURES_MAX;
    let trouble = error;
    if (NEVER_KEPT.has(error.code) || isLast) {
      try {
        // The agent is told with the next look that nobody waits for it.
        if (await this.#giveUp(remote, `what the agent answered cannot be kept: ${error.message}`)) return;
      } catch (reason) {
        trouble = RelayError.from(reason);
      }
    }
    const later = { failures, nextAtMs: nextRetryAtMs(failures, this.#clock.nowMs()) };
    await this.#save(remote, isLast ? OVER : later);
    if (trouble.code === "internal") throw trouble;
  }

  /** True when our task has failed with it; false when it has ended otherwise, or its deadline has. */
  async #giveUp({ tenant, taskId, agentId }: RemoteTask, why: string): Promise<boolean> {
    const reason = why.slice(0, LIMITS.reasonCharsMax).toWellFormed();
    try {
      await this.#tasks.fail(agentOf(tenant, agentId), taskId, { reason });
    } catch (cause) {
      const { code } = RelayError.from(cause);
      if (code === "task_finished" || code === "task_canceled") return false;
      if (code !== "permission_denied") throw cause;
      // An agent that may not answer cannot leave its requester waiting for ever either.
      await this.#tasks.fail(operatorOf(tenant), taskId, { reason });
    }
    return true;
  }

  /** Our task is over, or somebody else's: an agent that works for nobody is told so, once. */
  async #leave(remote: RemoteTask, ours: TaskRecord, signal: AbortSignal): Promise<void> {
    const { remoteTaskId } = remote;
    const isUnwanted = ours.state === "canceled" || ours.state === "failed";
    if (remoteTaskId === null || !isUnwanted || ours.assignee !== remote.agentId)
      return this.#save(remote, OVER);
    try {
      await this.#calls.call(remote, "cancel", { id: remoteTaskId }, { signal });
    } catch (reason) {
      if (!(reason instanceof RemoteFailure)) throw reason;
      if (signal.aborted) return;
      const failures = remote.failures + 1;
      if (reason.kind !== "refused" && failures < CANCEL_FAILURES_MAX) {
        const nextAtMs = nextRetryAtMs(failures, this.#clock.nowMs());
        return this.#save(remote, { answer: null, failures, nextAtMs });
      }
    }
    await this.#save(remote, OVER);
  }

  /** Where the agent has answered a message meanwhile, that is looked at next, and what was seen before is old. */
  async #save(remote: RemoteTask, after: After): Promise<void> {
    const { tenant } = remote;
    await this.#store.commit({ tenant, remoteTasks: [{ ...remote, ...after }], events: [] });
  }
}

function whyGivenUp(
  failure: RemoteFailure,
  { misses, failures }: Pick<RemoteTask, "misses" | "failures">,
): string | undefined {
  const { reason, error } = failure;
  if (misses >= LOOK_MISSES_MAX) return `the agent no longer knows the task: ${reason}`;
  if (error instanceof A2aError && ["MethodNotFound", "UnsupportedOperation"].includes(error.a2a)) {
    return `the agent does not tell what became of the task: ${reason}`;
  }
  if (failures < LOOK_FAILURES_MAX) return undefined;
  if (failure instanceof UnknownState)
    return `what became of the task was not to be learnt for an hour: ${reason}`;
  return `the agent could not be asked for an hour what became of the task: ${reason}`;
}

function isNotFound({ error, answer }: RemoteFailure): boolean {
  if (error instanceof A2aError) return error.a2a === "TaskNotFound";
  return error?.code === "not_found" || answer?.status === 404;
}
