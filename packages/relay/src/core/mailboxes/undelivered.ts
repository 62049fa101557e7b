import { type AgentId, isTerminal, POSTMASTER } from "@a2a-relay/protocol";
import type { Changes, RelayStore } from "../environment/relay-store.ts";
import type { EventType } from "../journal/event.ts";
import { type Stationery, undeliverableNotice } from "../messages/notices.ts";
import { deliveryEvent, withdrawWork, workMail } from "../tasks/task-changes.ts";
import { endingDigest, endTask } from "../tasks/task-result.ts";
import type { DeliveryRecord } from "./delivery-record.ts";

const UNDELIVERED_EVENTS: Readonly<Partial<Record<DeliveryRecord["state"], EventType>>> = {
  dead: "message.dead",
  expired: "message.expired",
  withdrawn: "message.withdrawn",
};

/** Who gave up on the mail: as the journal names them, and as the sender of a task's result. */
export interface GivenUpBy {
  readonly actor: string;
  readonly resultFrom: AgentId;
}

export const GIVEN_UP_BY_RELAY: GivenUpBy = { actor: POSTMASTER, resultFrom: POSTMASTER };

/**
 * All that follows when mail is settled without having been done: the event, the end of the task it asked
 * for with its result mail and what else was sent about it, or else a notice to the sender. Exactly one
 * letter tells the sender.
 */
export async function undeliveredChanges(
  store: RelayStore,
  stationery: Stationery,
  delivery: DeliveryRecord,
  by: GivenUpBy,
  data: Readonly<Record<string, unknown>> = {},
): Promise<readonly Partial<Changes>[]> {
  const { tenant, messageId, reason } = delivery;
  const type = UNDELIVERED_EVENTS[delivery.state] ?? "message.dead";
  const settled: Partial<Changes> = {
    deliveries: [delivery],
    events: [deliveryEvent(type, delivery, by.actor, stationery.nowMs, { reason, ...data })],
  };
  const senderIsRegistered = await isRegistered(store, tenant, delivery.sender);
  const task = delivery.taskId === null ? undefined : await store.task(tenant, delivery.taskId);
  if (task !== undefined && task.messageId === messageId && !isTerminal(task.state)) {
    const text = reason ?? `the mail is ${delivery.state}`;
    const requesterIsRegistered =
      task.requester === delivery.sender
        ? senderIsRegistered
        : await isRegistered(store, tenant, task.requester);
    const ended = endTask(
      task,
      {
        state: "failed",
        resultStatus: "error",
        text,
        parts: undefined,
        digest: endingDigest("failed", { reason: text }),
        actor: by.actor,
        sender: by.resultFrom,
      },
      stationery,
      requesterIsRegistered,
      await store.artifacts(tenant, task.id),
    );
    const open = await store.openDeliveriesOfTask(tenant, task.id);
    const others = workMail(task, open).filter((other) => other.messageId !== messageId);
    const withdrawn = withdrawWork(others, by.actor, stationery.nowMs, `its task failed: ${text}`);
    if (task.requester === delivery.sender) return [settled, withdrawn, ended.changes];
    // Whoever handed the task over is told apart from whoever asked for it.
    return [settled, withdrawn, ended.changes, ...(await notice(senderIsRegistered))];
  }
  return [settled, ...(await notice(senderIsRegistered && !delivery.quiet))];

  async function notice(wanted: boolean): Promise<readonly Partial<Changes>[]> {
    const original = wanted ? await store.message(tenant, messageId) : undefined;
    return original === undefined ? [] : [undeliverableNotice(stationery, original, delivery).changes];
  }
}

/** Only somebody with a mailbox can be told. */
export async function isRegistered(store: RelayStore, tenant: string, agentId: AgentId): Promise<boolean> {
  const known = await store.agent(tenant, agentId);
  return known !== undefined && known.agent.removedAtMs === null;
}
