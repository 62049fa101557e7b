import {
  type QueueTask,
  type QueueTaskEntry,
  type QueueTaskResult,
  type AgentId,
  LIMITS,
  type Message,
  type QueueState,
} from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { DeliveryRecord, MailboxMessage } from "../ports/deliveries.ts";
import type { QueueAgents } from "./queue-agents.ts";
import { toEntry, toResult, toTask } from "./queue-mapping.ts";

/** Whose queue, and which part of it; undefined is not narrowed. */
export interface QueueLook {
  readonly tenant: string;
  readonly party: AgentId | undefined;
  readonly state: QueueState | undefined;
  readonly leasedBeforeMs: number | undefined;
  readonly deadlineBeforeMs: number | undefined;
  readonly nowMs: number;
  readonly limit: number;
}

/** Deliveries and tasks as this wire shows them. Looking changes nothing. */
export class QueueView {
  readonly #store: RelayStore;
  readonly #agents: QueueAgents;

  constructor(store: RelayStore, agents: QueueAgents) {
    this.#store = store;
    this.#agents = agents;
  }

  /** Undefined when the task left in the meantime. */
  async task({ delivery, message }: MailboxMessage): Promise<QueueTask | undefined> {
    const { tenant, taskId } = delivery;
    const task = taskId === null ? undefined : await this.#store.task(tenant, taskId);
    if (task === undefined) return undefined;
    const parent = task.parentId === null ? undefined : await this.#store.task(tenant, task.parentId);
    return toTask(JSON.parse(message.json) as Message, delivery, task, {
      sender: await this.#agents.view(tenant, task.requester),
      recipient: await this.#agents.view(tenant, task.assignee),
      parent,
    });
  }

  async result({ delivery, message }: MailboxMessage): Promise<QueueTaskResult> {
    const { tenant, taskId } = delivery;
    const task = taskId === null ? undefined : await this.#store.task(tenant, taskId);
    const artifacts = task === undefined ? [] : await this.#store.artifacts(tenant, task.id);
    return toResult(JSON.parse(message.json) as Message, task, artifacts);
  }

  /** What waits, in the order in which it is handed out, then what is worked on, the longest first. */
  async tasks(look: QueueLook): Promise<readonly QueueTaskEntry[]> {
    const queued = look.state === "in_flight" ? [] : await this.#waiting(look);
    const leased =
      look.state === "queued" ? [] : await this.#mail(look, "leased", look.limit - queued.length);
    const entries = await this.#viewed([...queued, ...leased], async (mail) => {
      const task = await this.task(mail);
      return task === undefined ? undefined : toEntry(mail.delivery, task);
    });
    return entries.toSorted(inQueueOrder);
  }

  /** Results that were not acknowledged, also those that somebody has in hand. */
  async results(
    look: Pick<QueueLook, "limit" | "nowMs" | "tenant"> & { readonly agentId: AgentId | undefined },
  ): Promise<readonly QueueTaskResult[]> {
    const { tenant, agentId, limit } = look;
    const filter = {
      tenant,
      agentId,
      purpose: "result",
      leasedBeforeMs: undefined,
      deadlineBeforeMs: undefined,
      isOneLine: true,
    } as const;
    const leased = await this.#queue({ ...filter, state: "leased", limit });
    const waiting = await this.#queue({ ...filter, state: "available", limit: limit - leased.length });
    const fresh = waiting.filter(({ expiresAtMs }) => expiresAtMs > look.nowMs);
    return this.#viewed([...leased, ...fresh], (mail) => this.result(mail));
  }

  /** Work that waits for the same work of another task is in no line yet; it comes behind. */
  async #waiting(look: QueueLook): Promise<readonly DeliveryRecord[]> {
    const available = await this.#mail(look, "available", look.limit);
    const held = await this.#mail(look, "held", look.limit - available.length);
    return [...available, ...held].filter(({ expiresAtMs }) => expiresAtMs > look.nowMs);
  }

  #mail(
    { tenant, party, leasedBeforeMs, deadlineBeforeMs }: QueueLook,
    state: "available" | "held" | "leased",
    limit: number,
  ): Promise<readonly DeliveryRecord[]> {
    const filter = { tenant, agentId: undefined, party, leasedBeforeMs, deadlineBeforeMs, limit };
    return this.#queue({ ...filter, purpose: "work", state, isOneLine: state === "available" });
  }

  async #queue(filter: Parameters<RelayStore["queue"]>[0]): Promise<readonly DeliveryRecord[]> {
    if (filter.limit <= 0) return [];
    return (await this.#store.queue(filter)).map(({ delivery }) => delivery);
  }

  /** Ends with the first message that does not fit into one answer; the first of all comes whatever its length. */
  async #viewed<View>(
    deliveries: readonly DeliveryRecord[],
    view: (mail: MailboxMessage) => Promise<View | undefined>,
  ): Promise<readonly View[]> {
    const views: View[] = [];
    let bytesLeft: number = LIMITS.answerBytesMax;
    for (const delivery of deliveries) {
      const message = await this.#store.message(delivery.tenant, delivery.messageId);
      const viewed = message === undefined ? undefined : await view({ delivery, message });
      if (viewed === undefined) continue;
      bytesLeft -= Buffer.byteLength(JSON.stringify(viewed));
      if (bytesLeft < 0 && views.length > 0) break;
      views.push(viewed);
    }
    return views;
  }
}

function inQueueOrder(a: QueueTaskEntry, b: QueueTaskEntry): number {
  if (a.leased_at_ms === undefined || b.leased_at_ms === undefined) {
    return Number(a.leased_at_ms !== undefined) - Number(b.leased_at_ms !== undefined);
  }
  if (a.leased_at_ms !== b.leased_at_ms) return a.leased_at_ms - b.leased_at_ms;
  return a.task.id < b.task.id ? -1 : 1;
}
