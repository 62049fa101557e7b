import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";

/** What a repair is about: a message, or the leased message of a task. */
export interface RepairSubject {
  readonly task: TaskRecord | undefined;
  /** Undefined when a task was named and none of its messages is leased. */
  readonly delivery: DeliveryRecord | undefined;
}

export async function subjectOfMessage(
  store: RelayStore,
  tenant: string,
  messageId: string,
): Promise<RepairSubject | undefined> {
  const [delivery] = await store.deliveries.get(tenant, [messageId]);
  return delivery === undefined ? undefined : subjectOfDelivery(store, delivery);
}

async function subjectOfDelivery(store: RelayStore, delivery: DeliveryRecord): Promise<RepairSubject> {
  const { tenant, taskId } = delivery;
  return { delivery, task: taskId === null ? undefined : (await store.tasks.get(tenant, [taskId]))[0] };
}

export async function subjectOfTask(
  store: RelayStore,
  task: TaskRecord | undefined,
): Promise<RepairSubject | undefined> {
  if (task === undefined) return undefined;
  const open = await store.deliveries.openOfTasks(task.tenant, [task.id]);
  return { task, delivery: open.find(({ state }) => state === "leased") };
}

/** The agents concerned: sender and recipient of the message, requester and assignee of the task. */
export function partiesOf({ task, delivery }: RepairSubject): readonly AgentId[] {
  const ofTask = task === undefined ? [] : [task.requester, task.assignee];
  const ofDelivery = delivery === undefined ? [] : [delivery.sender, delivery.agentId];
  return [...new Set([...ofTask, ...ofDelivery])];
}

export function isSeenBy(principal: Principal, subject: RepairSubject): boolean {
  return principal.kind === "operator" || partiesOf(subject).includes(principal.agentId);
}

/** The leased delivery, or why there is none. */
export function inFlight({ task, delivery }: RepairSubject, name: string): DeliveryRecord {
  if (delivery?.state === "leased") return delivery;
  if (delivery !== undefined) {
    throw new RelayError(
      "wrong_state",
      `message ${delivery.messageId} is ${delivery.state}, not leased; only leased messages can be repaired`,
      { details: { state: delivery.state } },
    );
  }
  const state = task?.state ?? "unknown";
  throw new RelayError(
    "wrong_state",
    `task ${name} is not currently in flight: it is ${state} and none of its messages is leased`,
    { details: { state } },
  );
}
