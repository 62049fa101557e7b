import { isTerminal, POSTMASTER } from "@a2a-relay/protocol";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { MessageDefaults } from "./notices.ts";
import { deliveryEvent, withdrawWork } from "./task-changes.ts";
import { replayReason, replayResult } from "./task-replay.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { approve } from "./delivery-state.ts";
import { isStillThere } from "./undelivered.ts";

/**
 * What becomes of held work once the task that it waited for is over: it is answered with that task's result, or
 * else it is the one to be done. Nothing while it has to wait on.
 */
export async function releasedChanges(
  store: RelayStore,
  defaults: MessageDefaults,
  delivery: DeliveryRecord,
): Promise<readonly Partial<Changes>[]> {
  const { tenant, taskId, state } = delivery;
  const task = taskId === null ? undefined : await store.task(tenant, taskId);
  if (state !== "held" || task === undefined || isTerminal(task.state) || task.resultKey === null) return [];
  const first = await store.unfinishedWithResultKey(tenant, task.resultKey);
  if (first?.id !== task.id) return [];
  const { nowMs } = defaults;
  const cached = await store.cachedResult(tenant, task.resultKey, nowMs);
  if (cached !== undefined) {
    const registered = await isStillThere(store, tenant, task.requester, task.createdAtMs);
    const { changes } = replayResult(task, cached, defaults, registered);
    return [withdrawWork([delivery], POSTMASTER, nowMs, replayReason(cached)), changes];
  }
  const reason = "the task that it waited for has no result to share";
  const event = deliveryEvent("message.released", delivery, POSTMASTER, nowMs, { reason });
  return [{ deliveries: [approve(delivery)], events: [event] }];
}
