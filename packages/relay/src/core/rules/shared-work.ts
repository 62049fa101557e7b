import { isTerminal, POSTMASTER } from "@a2a-relay/protocol";
import { combine } from "../mechanisms/commit-retry.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { CachedResult, TaskRecord } from "../ports/tasks.ts";
import { approve } from "./delivery-state.ts";
import type { MessageDefaults } from "./notices.ts";
import { deliveryEvent, withdrawWork } from "./task-changes.ts";
import { endingDigest, endTask } from "./task-result.ts";
import { tellEnd, wholeArtifact } from "./task-update.ts";
import { isStillRegistered } from "./undelivered.ts";

/** Why a delivery is withdrawn whose task an earlier result answers. */
export function replayReason(cached: CachedResult): string {
  return `answered with the result of task ${cached.taskId}, which asked for the same`;
}

/** Ends a task with the result of an earlier one. The caller settles the delivery that asked for it. */
export function replayResult(
  task: TaskRecord,
  cached: CachedResult,
  defaults: MessageDefaults,
  requesterIsRegistered: boolean,
): { readonly task: TaskRecord; readonly changes: Partial<Changes> } {
  const shown = tellEnd(task, cached.artifacts.map(wholeArtifact), defaults.nowMs);
  const ended = endTask(
    shown.task,
    {
      state: "completed",
      resultStatus: "ok",
      text: cached.text,
      parts: cached.parts ?? undefined,
      replayOf: cached.taskId,
      digest: endingDigest("completed", { replay_of: cached.taskId }),
      actor: POSTMASTER,
      sender: task.assignee,
    },
    defaults,
    requesterIsRegistered,
    cached.artifacts,
  );
  const artifacts = cached.artifacts.map((artifact) => ({ tenant: task.tenant, taskId: task.id, artifact }));
  return { task: ended.task, changes: combine(task.tenant, [shown.changes, ended.changes, { artifacts }]) };
}

/**
 * Once the task that held work waited for is over, its result answers the held work; without a result the held work
 * is released and done. No changes while it has to wait.
 */
export async function releasedChanges(
  store: RelayStore,
  defaults: MessageDefaults,
  delivery: DeliveryRecord,
): Promise<readonly Partial<Changes>[]> {
  const { tenant, taskId, state } = delivery;
  const task = taskId === null ? undefined : (await store.tasks.get(tenant, [taskId]))[0];
  if (state !== "held" || task === undefined || isTerminal(task.state) || task.resultKey === null) return [];
  const first = await store.tasks.unfinishedWithResultKey(tenant, task.resultKey);
  if (first?.id !== task.id && first?.isWaiting !== true) return [];
  const { nowMs } = defaults;
  const cached = await store.tasks.cachedResult(tenant, task.resultKey, nowMs);
  if (cached !== undefined) {
    const registered = await isStillRegistered(store, tenant, task.requester, task.createdAtMs);
    const { changes } = replayResult(task, cached, defaults, registered);
    return [withdrawWork([delivery], POSTMASTER, nowMs, replayReason(cached)), changes];
  }
  if (first.id !== task.id) return [];
  const reason = "the task that it waited for has no result to share";
  const event = deliveryEvent("message.released", delivery, POSTMASTER, nowMs, { reason });
  return [{ tasks: [{ ...task, isWaiting: false }], deliveries: [approve(delivery)], events: [event] }];
}
