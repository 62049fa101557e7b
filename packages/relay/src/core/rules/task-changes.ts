import { RelayError, type TaskState } from "@a2a-relay/protocol";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { EventDraft, EventType } from "../ports/journal.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import { acknowledge, assertMayFinish, isRevoked, withdraw } from "./delivery-state.ts";
import type { TaskRecord } from "../ports/tasks.ts";

/** Open deliveries of the task in the mailbox of its assignee. */
export function workDeliveries(
  task: TaskRecord,
  deliveries: readonly DeliveryRecord[],
): readonly DeliveryRecord[] {
  return deliveries.filter((delivery) => delivery.agentId === task.assignee);
}

/**
 * Fencing for a task: while one of its deliveries is leased, the caller must hold one of those leases. When none is,
 * a lease is accepted only from its last holder, also after `asking`, the delivery that asked for the work, is settled.
 */
export function assertHoldsTask(
  deliveries: readonly DeliveryRecord[],
  asking: DeliveryRecord | undefined,
  leaseId: string | undefined,
): void {
  const leased = deliveries.filter((delivery) => delivery.state === "leased");
  if (leased.some((delivery) => delivery.leaseId === leaseId)) return;
  const [held] = leased;
  if (held !== undefined) assertMayFinish(held, leaseId);
  if (leaseId === undefined || asking === undefined) return;
  const all = [asking, ...deliveries];
  const wasLeased = all.some((delivery) => delivery.attempt > 0);
  if (wasLeased && !all.some((delivery) => delivery.leaseId === leaseId)) throw leaseLost(asking, leaseId);
}

/**
 * After an operator's force-error the task has failed; the worker under the revoked lease learns that its lease is
 * lost, as after a requeue, and not that the task was finished.
 */
export function assertLeaseNotRevoked(asking: DeliveryRecord | undefined, leaseId: string | undefined): void {
  if (leaseId !== undefined && asking !== undefined && isRevoked(asking)) throw leaseLost(asking, leaseId);
}

function leaseLost({ messageId, attempt }: DeliveryRecord, leaseId: string): RelayError {
  return new RelayError(
    "lease_lost",
    `lease ${leaseId} on message ${messageId} is over; its work must not be finished`,
    { details: { message_id: messageId, attempt } },
  );
}

/** Messages about the task that no worker of the assignee has read. */
export function unreadFollowUps(
  task: TaskRecord,
  deliveries: readonly DeliveryRecord[],
): readonly DeliveryRecord[] {
  return deliveries.filter(
    ({ messageId, state, deliveredAtMs, attempt }) =>
      messageId !== task.messageId && state === "available" && deliveredAtMs === null && attempt === 0,
  );
}

/**
 * The work is done: all of its deliveries are settled in the same commit. Unread ones cannot be acknowledged; they are
 * withdrawn, and their sender learns from the result that the task is over.
 */
export function acknowledgeWork(
  task: TaskRecord,
  deliveries: readonly DeliveryRecord[],
  actor: string,
  nowMs: number,
): Partial<Changes> {
  const unread = unreadFollowUps(task, deliveries);
  const settled = deliveries
    .filter((delivery) => !unread.includes(delivery))
    .map((delivery) => acknowledge(delivery, delivery.leaseId ?? undefined, nowMs))
    .filter((delivery) => delivery !== undefined);
  const withdrawn = withdrawWork(unread, actor, nowMs, "the task was finished before this was read");
  return {
    deliveries: [...settled, ...(withdrawn.deliveries ?? [])],
    events: [
      ...settled.map((delivery) => deliveryEvent("message.acknowledged", delivery, actor, nowMs, {})),
      ...(withdrawn.events ?? []),
    ],
  };
}

export function withdrawWork(
  deliveries: readonly DeliveryRecord[],
  actor: string,
  nowMs: number,
  reason: string,
): Partial<Changes> {
  const withdrawn = deliveries.map((delivery) => withdraw(delivery, reason, nowMs));
  return {
    deliveries: withdrawn,
    events: withdrawn.map((delivery) =>
      deliveryEvent("message.withdrawn", delivery, actor, nowMs, { reason }),
    ),
  };
}

/** Once a lease is over, follow-ups that were reserved for its worker are free for every worker. */
export async function freeReservations(
  store: RelayStore,
  delivery: DeliveryRecord,
): Promise<Pick<Changes, "deliveries">> {
  if (delivery.taskId === null) return {};
  const open = await store.deliveries.openOfTasks(delivery.tenant, [delivery.taskId]);
  const reserved = open.filter(
    (other) => other.messageId !== delivery.messageId && other.reservedFor !== null,
  );
  return { deliveries: reserved.map((other) => ({ ...other, reservedFor: null })) };
}

const STATE_EVENTS = {
  working: "task.working",
  "input-required": "task.input-required",
  "auth-required": "task.auth-required",
  completed: "task.completed",
  failed: "task.failed",
  canceled: "task.canceled",
  rejected: "task.rejected",
} as const satisfies Record<Exclude<TaskState, "submitted">, EventType>;

/** The task's new state; recorded on the message that asked for the work, so that its receipts show it. */
export function taskEvent(
  task: TaskRecord,
  actor: string,
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return {
    type: task.state === "submitted" ? "task.handed_off" : STATE_EVENTS[task.state],
    atMs: task.updatedAtMs,
    actor,
    agentId: task.assignee,
    messageId: task.messageId,
    taskId: task.id,
    threadId: task.threadId,
    data,
  };
}

export function deliveryEvent(
  type: EventType,
  delivery: DeliveryRecord,
  actor: string,
  atMs: number,
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return {
    type,
    atMs,
    actor,
    agentId: delivery.agentId,
    messageId: delivery.messageId,
    taskId: delivery.taskId,
    threadId: delivery.threadId,
    data,
  };
}

/** A worker took the message. */
export function leasedEvent(delivery: DeliveryRecord, atMs: number): EventDraft {
  const { attempt, leaseId, worker } = delivery;
  const data = { attempt, lease_id: leaseId, ...(worker === null ? {} : { worker }) };
  return deliveryEvent("message.leased", delivery, delivery.agentId, atMs, data);
}
