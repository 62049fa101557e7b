import { GUEST, LIMITS, POSTMASTER } from "@a2a-relay/protocol";
import { TASK_PUSHES_TOPIC, type Watch } from "../ports/change-feed.ts";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import { HOW_TO_ALLOW } from "../rules/egress-policy.ts";
import { type Outbound, OutboundFailure } from "../ports/outbound-http.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { PushParts, PushSettings } from "./push-delivery.ts";
import { outcomeOfAnswer, outcomeOfFailure, type PushOutcome } from "./push-outcome.ts";
import type { TaskRecord, TaskUpdate } from "../ports/tasks.ts";
import { a2aEventOf } from "../tasks/a2a-view.ts";
import { afterArrival, afterFailure, toldUpTo } from "./task-push-changes.ts";
import { isSameConfig, nameOf, originOf, taskPushEvent } from "./task-push-config.ts";
import { isToldByTask, type TaskNews, taskPushRequest } from "./task-push-message.ts";
import type { TaskPushConfig, TaskPushKey, TaskPushShare } from "../ports/task-pushes.ts";
import { A2aTaskReader } from "../tasks/a2a-task.ts";

/** What there is to do. */
export interface TaskPushAgenda {
  /** To be begun now. */
  readonly due: readonly TaskPushConfig[];
  /** How long nothing else falls due, unless something changes. */
  readonly waitMs: number;
}

/** A request that has ended and is not on record yet. */
export interface EndedTaskPush {
  /** As it was when the request went out. */
  readonly sent: TaskPushConfig;
  /** The update that was tried. */
  readonly n: number;
  /** The last update that was in what was sent. */
  readonly toldN: number;
  readonly outcome: PushOutcome;
  readonly endedAtMs: number;
}

export interface TaskPushResult {
  readonly isDelivered: boolean;
  /** There is more to send at once. */
  readonly hasMore: boolean;
}

interface Walked {
  /** The first update that is to be told; undefined: none is. */
  readonly update: TaskUpdate | undefined;
  /** The last update that was seen. */
  readonly n: number;
}

const ANY_TIME = Number.MAX_SAFE_INTEGER;
const SHARE: TaskPushShare = {
  ofOwner: LIMITS.taskPushesOfOwnerMax,
  ofReceiver: LIMITS.taskPushesOfReceiverMax,
};

const NO_PARTY = "whoever asked for it takes no part in the task any more";
const BLOCKED = `the url is at an address that the relay does not call; ${HOW_TO_ALLOW}`;

/**
 * Tells A2A callers of their tasks where they asked for it, update by update. All of it is on disk, so that whoever
 * comes next goes on from there.
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
   * What to begin beside what is under way, and when to look again if nothing ends before. One owner, and one receiver
   * of it, has so many under way at a time: who never answers holds up nobody but itself.
   */
  async agenda(underWay: Iterable<TaskPushConfig>): Promise<TaskPushAgenda> {
    const nowMs = this.#clock.nowMs();
    const { due, nextAtMs } = await this.#store.dueTaskPushes(nowMs, SHARE);
    const names = new Set<string>();
    const counts = new Map<string, number>();
    const begin = (config: TaskPushConfig): void => {
      names.add(nameOf(config));
      for (const key of shareKeys(config)) counts.set(key, (counts.get(key) ?? 0) + 1);
    };
    for (const config of underWay) begin(config);
    const begun = due.filter((config) => {
      const [owner, receiver] = shareKeys(config);
      const hasRoom =
        (counts.get(owner) ?? 0) < SHARE.ofOwner && (counts.get(receiver) ?? 0) < SHARE.ofReceiver;
      if (!hasRoom || names.has(nameOf(config))) return false;
      begin(config);
      return true;
    });
    return { due: begun, waitMs: nextAtMs - nowMs };
  }

  /**
   * Sends the update behind the cursor. What came of it is for the caller to put on record. `idle`: there was nothing
   * to send, or it was stopped; nothing is on record of it.
   */
  async attempt({ tenant, taskId, id }: TaskPushKey, signal: AbortSignal): Promise<EndedTaskPush | "idle"> {
    const config = await this.#store.taskPush(tenant, taskId, id);
    const isDue = config?.state === "active" && (config.nextAtMs ?? ANY_TIME) <= this.#clock.nowMs();
    if (!isDue || signal.aborted) return "idle";
    const { update, n } = await this.#walk(config);
    const task = await this.#store.task(tenant, taskId);
    if (task === undefined) return "idle";
    if (!(await this.#mayKnow(config, task))) return this.#end(config, NO_PARTY);
    if (update === undefined) return this.#rest(toldUpTo(config, task, n, this.#clock.nowMs()));
    const outcome = await this.#call(config, task, update, signal);
    if (outcome === undefined) return "idle";
    const toldN = isToldByTask(config) ? task.updateCount : n;
    return { sent: config, n, toldN, outcome, endedAtMs: this.#clock.nowMs() };
  }

  /** May be asked again when it failed: what is on record already is not written twice. */
  async record({ sent, n, toldN, outcome, endedAtMs: nowMs }: EndedTaskPush): Promise<TaskPushResult> {
    const { tenant, taskId, id } = sent;
    const isDelivered = outcome.kind === "delivered";
    return decideAndCommit(this.#store, async () => {
      const config = await this.#store.taskPush(tenant, taskId, id);
      const task = await this.#store.task(tenant, taskId);
      if (config === undefined || task === undefined || !isSameConfig(config, sent)) {
        return { changes: undefined, answer: { isDelivered, hasMore: false } };
      }
      const offsetsMs = this.#settings.pushAttemptsMs;
      const after =
        outcome.kind === "delivered"
          ? afterArrival(config, task, { n: toldN, nowMs })
          : afterFailure(config, task, outcome, { n, nowMs, offsetsMs });
      const isLost = after.reason !== null && after.state !== "active";
      const events = isLost ? [disabledEvent(after, nowMs)] : [];
      const hasMore = after.nextAtMs !== null && after.nextAtMs <= this.#clock.nowMs();
      return { changes: { tenant, taskPushes: [after], events }, answer: { isDelivered, hasMore } };
    });
  }

  /** Past what only the history of the task shows. */
  async #walk({ tenant, taskId, afterN }: TaskPushConfig): Promise<Walked> {
    for (let n = afterN; ;) {
      const query = { tenant, taskId, afterN: n, withArtifacts: true, limit: 1 };
      const [update] = (await this.#store.taskUpdates({ ...query, bytesMax: LIMITS.answerBytesMax })).updates;
      if (update === undefined) return { update, n };
      n = update.n;
      if (update.step.kind !== "message") return { update, n };
    }
  }

  /** Whoever left, or handed the task on, is not told what happens to it since. */
  async #mayKnow({ tenant, owner, createdAtMs }: TaskPushConfig, task: TaskRecord): Promise<boolean> {
    if (owner === GUEST) return true;
    if (owner !== task.requester && owner !== task.assignee) return false;
    const agent = (await this.#store.agent(tenant, owner))?.agent;
    return agent?.removedAtMs === null && agent.othersBeforeMs <= createdAtMs;
  }

  /** As of the version that was read: whoever changed it since has made it due again. */
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

  /** Undefined when it was stopped before anything came of it: then it counts as not tried. */
  async #call(
    config: TaskPushConfig,
    task: TaskRecord,
    update: TaskUpdate,
    signal: AbortSignal,
  ): Promise<PushOutcome | undefined> {
    const news = await this.#newsOf(config, task, update);
    try {
      const answer = await this.#outbound.request({
        ...taskPushRequest(config, task, news, this.#settings),
        url: config.url,
        timeoutMs: this.#settings.pushTimeoutMs,
        answerBytesMax: LIMITS.pushAnswerBytesMax,
        signal,
      });
      return outcomeOfAnswer(answer);
    } catch (reason) {
      if (!(reason instanceof OutboundFailure)) throw reason;
      if (reason.code === "aborted" && signal.aborted) return undefined;
      const outcome = outcomeOfFailure(reason);
      return reason.code === "blocked" ? { ...outcome, reason: BLOCKED } : outcome;
    }
  }

  async #newsOf(config: TaskPushConfig, task: TaskRecord, update: TaskUpdate): Promise<TaskNews> {
    const event = isToldByTask(config) ? undefined : a2aEventOf(task, update);
    if (event !== undefined) return { event };
    const extent = { historyLength: undefined, withArtifacts: true };
    return { task: (await this.#taskReader.read(task, extent)).task };
  }
}

function shareKeys(config: TaskPushConfig): readonly [owner: string, receiver: string] {
  const { tenant, owner } = config;
  return [JSON.stringify([tenant, owner]), JSON.stringify([tenant, owner, originOf(config)])];
}

function disabledEvent(config: TaskPushConfig, atMs: number): ReturnType<typeof taskPushEvent> {
  const { reason, state } = config;
  return taskPushEvent("push.disabled", config, { actor: POSTMASTER, atMs }, { state, reason });
}
