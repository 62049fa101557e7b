import { A2aError, type A2aTask, isTerminal, LIMITS, RelayError } from "@a2a-relay/protocol";
import { agentOf, operatorOf } from "../access/principal.ts";
import { REMOTE_TASKS_TOPIC, type Watch } from "../environment/change-feed.ts";
import type { Clock } from "../environment/clock.ts";
import type { Outbound } from "../environment/outbound.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { RemoteCalls, type RemoteSettings } from "./remote-calls.ts";
import { RemoteFailure } from "./remote-failure.ts";
import { HISTORY_LENGTH } from "./remote-letter.ts";
import { RemoteRecord, type Recorded } from "./remote-record.ts";
import {
  LOOK_FAILURES_MAX,
  LOOK_MISSES_MAX,
  nextLookAtMs,
  nextRetryAtMs,
  type RemoteAnswer,
  type RemoteTask,
} from "./remote-task.ts";

export interface RemoteWorkParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly outbound: Outbound;
  readonly tasks: TaskService;
}

/** What there is to look at. */
export interface RemoteAgenda {
  readonly due: readonly RemoteTask[];
  /** How long nothing else falls due, unless somebody answers. */
  readonly waitMs: number;
}

/** What is written of a task elsewhere after a look at it. */
type After = Partial<Omit<RemoteTask, "tenant" | "taskId" | "version">>;

const ANY_TIME = Number.MAX_SAFE_INTEGER;
/** Whether the agent hears of it or not, our task is over. */
const CANCEL_FAILURES_MAX = 5;
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

  /** `isUnderWay` tells of those that are being looked at already. */
  async agenda(isUnderWay: (task: RemoteTask) => boolean, room: number): Promise<RemoteAgenda> {
    const nowMs = this.#clock.nowMs();
    // More than can be under way, so that there is always one to see that is not, if there is one at all.
    const first = await this.#store.dueRemoteTasks(ANY_TIME, 2 * LIMITS.remoteLooksMax);
    const waiting = first.filter((task) => !isUnderWay(task));
    const due = waiting.filter(({ nextAtMs }) => (nextAtMs ?? ANY_TIME) <= nowMs).slice(0, room);
    const next = waiting[due.length]?.nextAtMs ?? Infinity;
    return { due, waitMs: next > nowMs ? next - nowMs : Infinity };
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
      await this.#notRecorded(remote, RelayError.from(reason));
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
    const nextAtMs = isOver ? null : nextLookAtMs({ changedAtMs }, nowMs);
    return { answer: null, statusDigest, changedAtMs, nextAtMs, failures: 0, misses: 0 };
  }

  async #failed(remote: RemoteTask, failure: RemoteFailure): Promise<void> {
    const isMissing = isNotFound(failure);
    const misses = isMissing ? remote.misses + 1 : remote.misses;
    const failures = isMissing ? remote.failures : remote.failures + 1;
    const why = whyGivenUp(failure, { misses, failures });
    if (why === undefined) {
      const nextAtMs = nextRetryAtMs(misses + failures, this.#clock.nowMs());
      return this.#save(remote, { misses, failures, nextAtMs });
    }
    await this.#giveUp(remote, why);
    await this.#save(remote, OVER);
  }

  /** What the agent said cannot be put on record of our task. */
  async #notRecorded(remote: RemoteTask, error: RelayError): Promise<void> {
    switch (error.code) {
      case "task_finished":
      case "task_canceled":
      case "not_found":
        // A deadline that has passed binds before our task is over, so that this does not go on at once.
        return this.#save(remote, { nextAtMs: nextRetryAtMs(1, this.#clock.nowMs()) });
      case "invalid_argument":
      case "too_large":
      case "permission_denied":
        // The agent is told with the next look that nobody waits for it.
        return this.#giveUp(remote, `what the agent answered cannot be kept: ${error.message}`);
      default:
        throw error;
    }
  }

  async #giveUp({ tenant, taskId, agentId }: RemoteTask, why: string): Promise<void> {
    const reason = why.slice(0, LIMITS.reasonCharsMax).toWellFormed();
    try {
      await this.#tasks.fail(agentOf(tenant, agentId), taskId, { reason });
    } catch (cause) {
      const { code } = RelayError.from(cause);
      if (code === "task_finished" || code === "task_canceled") return;
      if (code !== "permission_denied") throw cause;
      // An agent that may not answer cannot leave its requester waiting for ever either.
      await this.#tasks.fail(operatorOf(tenant), taskId, { reason });
    }
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

  /** Where the agent has answered a letter meanwhile, that is looked at next, and what was seen before is old. */
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
  return `the agent could not be asked for an hour what became of the task: ${reason}`;
}

function isNotFound({ error, answer }: RemoteFailure): boolean {
  if (error instanceof A2aError) return error.a2a === "TaskNotFound";
  return error?.code === "not_found" || answer?.status === 404;
}
