import { A2A_DIALECTS, GUEST, LIMITS, POSTMASTER } from "@a2a-relay/protocol";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import { TASK_PUSHES_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { Outbound, PushOutcome, TaskUpdatePush } from "../ports/outbound.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskPushConfig, TaskPushKey, TaskPushShare } from "../ports/task-pushes.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { originOf } from "../rules/egress-policy.ts";
import { a2aEventOf } from "../tasks/a2a-view.ts";
import { A2aTaskReader } from "../tasks/a2a-task.ts";
import type { DueWork } from "./outbound-schedule.ts";
import type { PushParts, PushSettings } from "./push-delivery.ts";
import {
  configAfterArrival,
  configAfterFailure,
  configAtUpdate,
  configKey,
  isSameConfig,
  taskPushEvent,
} from "./task-push-config.ts";
import { joinedKey } from "../mechanisms/joined-key.ts";

/** An attempt that has ended and is not recorded yet. */
export interface EndedTaskPush {
  /** The configuration when the request was made. */
  readonly sent: TaskPushConfig;
  /** The update that the attempt was for. */
  readonly n: number;
  /** The last update that the request contained. */
  readonly sentN: number;
  readonly outcome: PushOutcome;
  readonly endedAtMs: number;
}

export interface TaskPushResult {
  readonly isDelivered: boolean;
  /** The next update is due now. */
  readonly hasMore: boolean;
}

interface NextUpdate {
  /** The first update to send; undefined when there is none. */
  readonly update: TaskUpdate | undefined;
  /** The last update that was read. */
  readonly n: number;
}

const ANY_TIME = Number.MAX_SAFE_INTEGER;
const SHARE: TaskPushShare = {
  ofOwner: LIMITS.taskPushesOfOwnerMax,
  ofReceiver: LIMITS.taskPushesOfReceiverMax,
};

const NO_PARTY = "its owner takes no part in the task any more";

/**
 * Pushes the updates of tasks to the URLs that A2A callers configured, one after the other: `chooseDue` → `attempt` →
 * `record`. All state is in the store, so that another process can continue at any step.
 */
export class TaskPushDelivery {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #outbound: Outbound;
  readonly #settings: PushSettings;
  readonly #taskReader: A2aTaskReader;

  constructor(parts: PushParts, settings: PushSettings) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#outbound = parts.outbound;
    this.#settings = settings;
    this.#taskReader = new A2aTaskReader(parts.store);
  }

  watch(): Watch {
    return this.#store.feed.watch(TASK_PUSHES_TOPIC, { isOwn: true });
  }

  /**
   * Chooses configurations to push now, beside those under way. Each owner has a quota, and each of its receivers a
   * smaller one, so that a receiver that hangs delays no other.
   */
  async chooseDue(underWay: Iterable<TaskPushConfig>): Promise<DueWork<TaskPushConfig>> {
    const nowMs = this.#clock.nowMs();
    const { due, nextAtMs } = await this.#store.taskPushes.due(nowMs, SHARE);
    const keys = new Set<string>();
    const counts = new Map<string, number>();
    const begin = (config: TaskPushConfig): void => {
      keys.add(configKey(config));
      for (const key of shareKeys(config)) counts.set(key, (counts.get(key) ?? 0) + 1);
    };
    for (const config of underWay) begin(config);
    const begun = due.filter((config) => {
      const [owner, receiver] = shareKeys(config);
      const hasRoom =
        (counts.get(owner) ?? 0) < SHARE.ofOwner && (counts.get(receiver) ?? 0) < SHARE.ofReceiver;
      if (!hasRoom || keys.has(configKey(config))) return false;
      begin(config);
      return true;
    });
    return { due: begun, waitMs: nextAtMs - nowMs };
  }

  /**
   * Sends the update behind the cursor. The caller records the outcome. `idle`: there was nothing to send, or the relay
   * stopped; no attempt is recorded.
   */
  async attempt({ tenant, taskId, id }: TaskPushKey, signal: AbortSignal): Promise<EndedTaskPush | "idle"> {
    const config = await this.#store.taskPushes.get(tenant, taskId, id);
    const isDue = config?.state === "active" && (config.nextAtMs ?? ANY_TIME) <= this.#clock.nowMs();
    if (!isDue || signal.aborted) return "idle";
    const { update, n } = await this.#nextUpdate(config);
    const [task] = await this.#store.tasks.get(tenant, [taskId]);
    if (task === undefined) return "idle";
    if (!(await this.#mayRead(config, task))) return this.#end(config, NO_PARTY);
    if (update === undefined) return this.#rest(configAtUpdate(config, task, n, this.#clock.nowMs()));
    const content = await this.#contentOf(config, task, update);
    const outcome = await this.#outbound.pushTaskUpdate({ ...config, content }, signal);
    if (outcome === undefined) return "idle";
    const sentN = sendsTask(config) ? task.updateCount : n;
    return { sent: config, n, sentN, outcome, endedAtMs: this.#clock.nowMs() };
  }

  /** Commits the outcome. Safe to call again after an error: an attempt is never written twice. */
  async record({ sent, n, sentN, outcome, endedAtMs: nowMs }: EndedTaskPush): Promise<TaskPushResult> {
    const { tenant, taskId, id } = sent;
    const isDelivered = outcome.kind === "delivered";
    return decideAndCommit(this.#store, async () => {
      const config = await this.#store.taskPushes.get(tenant, taskId, id);
      const [task] = await this.#store.tasks.get(tenant, [taskId]);
      if (config === undefined || task === undefined || !isSameConfig(config, sent)) {
        return { changes: undefined, answer: { isDelivered, hasMore: false } };
      }
      const offsetsMs = this.#settings.pushAttemptsMs;
      const after =
        outcome.kind === "delivered"
          ? configAfterArrival(config, task, { n: sentN, nowMs })
          : configAfterFailure(config, task, outcome, { n, nowMs, offsetsMs });
      const isDisabled = after.reason !== null && after.state !== "active";
      const events = isDisabled ? [disabledEvent(after, nowMs)] : [];
      const hasMore = after.nextAtMs !== null && after.nextAtMs <= this.#clock.nowMs();
      return { changes: { tenant, taskPushes: [after], events }, answer: { isDelivered, hasMore } };
    });
  }

  /** Skips messages, which belong to the history of the task only. */
  async #nextUpdate({ tenant, taskId, afterN }: TaskPushConfig): Promise<NextUpdate> {
    for (let n = afterN; ;) {
      const query = { tenant, taskId, afterN: n, withArtifacts: true, limit: 1 };
      const [update] = (await this.#store.tasks.updates({ ...query, bytesMax: LIMITS.answerBytesMax }))
        .updates;
      if (update === undefined) return { update, n };
      n = update.n;
      if (update.step.kind !== "message") return { update, n };
    }
  }

  /** An agent that was removed, or is no longer a party of the task, gets no more updates. */
  async #mayRead({ tenant, owner, createdAtMs }: TaskPushConfig, task: TaskRecord): Promise<boolean> {
    if (owner === GUEST) return true;
    if (owner !== task.requester && owner !== task.assignee) return false;
    const agent = (await this.#store.agents.get(tenant, owner))?.agent;
    return agent?.removedAtMs === null && agent.othersBeforeMs <= createdAtMs;
  }

  /** A lost race is fine: the change that won made the configuration due again. */
  async #rest(config: TaskPushConfig): Promise<"idle"> {
    await this.#store.commit({ tenant: config.tenant, taskPushes: [config], events: [] });
    return "idle";
  }

  async #end(config: TaskPushConfig, reason: string): Promise<"idle"> {
    const ended: TaskPushConfig = { ...config, state: "ended", reason, nextAtMs: null };
    const events = [disabledEvent(ended, this.#clock.nowMs())];
    await this.#store.commit({ tenant: config.tenant, taskPushes: [ended], events });
    return "idle";
  }

  /** Receivers of 1.0 get the event, those of older dialects the whole task with every update. */
  async #contentOf(
    config: TaskPushConfig,
    task: TaskRecord,
    update: TaskUpdate,
  ): Promise<TaskUpdatePush["content"]> {
    const event = sendsTask(config) ? undefined : a2aEventOf(task, update);
    if (event !== undefined) return { event };
    const extent = { historyLength: undefined, withArtifacts: true };
    const { task: whole } = await this.#taskReader.read(task, extent);
    // Callers of 0.1 know the task by the id they gave it.
    const isNamed = config.dialect === "0.1" && task.clientId !== null;
    return { task: isNamed ? { ...whole, id: task.clientId } : whole };
  }
}

function shareKeys(config: TaskPushConfig): readonly [owner: string, receiver: string] {
  const { tenant, owner } = config;
  return [joinedKey(tenant, owner), joinedKey(tenant, owner, originOf(config))];
}

function disabledEvent(config: TaskPushConfig, atMs: number): ReturnType<typeof taskPushEvent> {
  const { reason, state } = config;
  return taskPushEvent("push.disabled", config, { actor: POSTMASTER, atMs }, { state, reason });
}

function sendsTask({ dialect }: TaskPushConfig): boolean {
  return A2A_DIALECTS[dialect].pushes === "task";
}
