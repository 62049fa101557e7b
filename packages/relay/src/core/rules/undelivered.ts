import { type AgentId, isTerminal, POSTMASTER } from "@a2a-relay/protocol";
import type { Changes, RelayStore } from "../ports/relay-store.ts";
import type { EventType } from "../ports/journal.ts";
import { type MessageDefaults, undeliverableNotice } from "./notices.ts";
import { deliveryEvent, freeReservations, withdrawWork, workDeliveries } from "./task-changes.ts";
import { endingDigest, endTask } from "./task-result.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";

const UNDELIVERED_EVENTS: Readonly<Partial<Record<DeliveryRecord["state"], EventType>>> = {
  dead: "message.dead",
  expired: "message.expired",
  withdrawn: "message.withdrawn",
};

/** Who gave up on a message: the actor in the journal, and the sender of a task's result. */
export interface GivenUpBy {
  readonly actor: string;
  readonly resultFrom: AgentId;
}

export const GIVEN_UP_BY_RELAY: GivenUpBy = { actor: POSTMASTER, resultFrom: POSTMASTER };

/**
 * All changes when a delivery is settled without having been done: the event, and the failure of the task that it
 * asked for, with its result; or else a notice to the sender. Exactly one message tells the sender.
 */
export async function undeliveredChanges(
  store: RelayStore,
  defaults: MessageDefaults,
  delivery: DeliveryRecord,
  by: GivenUpBy,
  data: Readonly<Record<string, unknown>> = {},
): Promise<readonly Partial<Changes>[]> {
  const { tenant, messageId, reason } = delivery;
  const type = UNDELIVERED_EVENTS[delivery.state] ?? "message.dead";
  const settled: Partial<Changes> = {
    deliveries: [delivery],
    events: [deliveryEvent(type, delivery, by.actor, defaults.nowMs, { reason, ...data })],
  };
  const task = delivery.taskId === null ? undefined : (await store.tasks.get(tenant, [delivery.taskId]))[0];
  if (task === undefined || task.messageId !== messageId || isTerminal(task.state)) {
    const freed = await freeReservations(store, delivery);
    return [settled, freed, ...(await senderNotice(store, defaults, delivery))];
  }
  const text = reason ?? `the message is ${delivery.state}`;
  const failed = await failedTaskChanges(store, defaults, task, text, by, messageId);
  // The agent that handed the task over gets a notice; the requester gets the result.
  const told = task.requester === delivery.sender ? [] : await senderNotice(store, defaults, delivery);
  return [settled, ...failed, ...told];
}

/**
 * A task that no agent will finish: it fails, its other deliveries are withdrawn, and its requester gets the result.
 * `settledId` is a delivery that is settled already.
 */
export async function failedTaskChanges(
  store: RelayStore,
  defaults: MessageDefaults,
  task: TaskRecord,
  reason: string,
  by: GivenUpBy,
  settledId?: string,
): Promise<readonly Partial<Changes>[]> {
  const ended = endTask(
    task,
    {
      state: "failed",
      resultStatus: "error",
      text: reason,
      parts: undefined,
      digest: endingDigest("failed", { reason }),
      actor: by.actor,
      sender: by.resultFrom,
    },
    defaults,
    await isStillRegistered(store, task.tenant, task.requester, task.createdAtMs),
    await store.tasks.artifacts(task.tenant, task.id),
  );
  const open = await store.deliveries.openOfTasks(task.tenant, [task.id]);
  const others = workDeliveries(task, open).filter((other) => other.messageId !== settledId);
  const why = `its task failed: ${reason}`;
  return [...(await withdrawnChanges(store, defaults, task, others, by.actor, why)), ended.changes];
}

/** Withdraws deliveries. Their senders get a notice, except the requester, who gets the result of the task. */
export async function withdrawnChanges(
  store: RelayStore,
  defaults: MessageDefaults,
  task: TaskRecord,
  deliveries: readonly DeliveryRecord[],
  actor: string,
  reason: string,
): Promise<readonly Partial<Changes>[]> {
  const withdrawn = withdrawWork(deliveries, actor, defaults.nowMs, reason);
  const notices: Partial<Changes>[] = [];
  for (const delivery of withdrawn.deliveries ?? []) {
    if (delivery.sender === task.requester) continue;
    notices.push(...(await senderNotice(store, defaults, delivery)));
  }
  return [withdrawn, ...notices];
}

/** No notice is sent about quiet messages, nor to a sender without a mailbox. */
async function senderNotice(
  store: RelayStore,
  defaults: MessageDefaults,
  delivery: DeliveryRecord,
): Promise<readonly Partial<Changes>[]> {
  const { tenant, messageId, sender, quiet } = delivery;
  const original = quiet ? undefined : (await store.messages.get(tenant, [messageId]))[0];
  if (original === undefined) return [];
  const { acceptedAtMs } = original;
  if (!(await isStillRegistered(store, tenant, sender, acceptedAtMs))) return [];
  return [undeliverableNotice(defaults, original, delivery).changes];
}

/** False also when the id has a new owner since then. */
export async function isStillRegistered(
  store: RelayStore,
  tenant: string,
  agentId: AgentId,
  atMs: number,
): Promise<boolean> {
  const agent = (await store.agents.get(tenant, agentId))?.agent;
  return agent?.removedAtMs === null && agent.othersBeforeMs <= atMs;
}
