import {
  type QueueTask,
  type QueueTaskEntry,
  type QueueTaskResult,
  type AgentId,
  LIMITS,
  type QueueState,
} from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { DeliveryRecord, MailboxMessage, QueueFilter } from "../ports/deliveries.ts";
import type { QueueAgents } from "./queue-agents.ts";
import { toEntry, toResult, toTask } from "./queue-mapping.ts";
import { bytesAsJson, messageOf } from "../mechanisms/stored-json.ts";

/** Filters of a queue reading; an undefined filter accepts everything. */
export interface QueueTaskFilter {
  readonly tenant: string;
  readonly party: AgentId | undefined;
  readonly state: QueueState | undefined;
  readonly leasedBeforeMs: number | undefined;
  readonly deadlineBeforeMs: number | undefined;
  readonly nowMs: number;
  readonly limit: number;
}

/** Reads deliveries and tasks in this wire's form, without changing them. */
export class QueueView {
  readonly #store: RelayStore;
  readonly #agents: QueueAgents;

  constructor(store: RelayStore, agents: QueueAgents) {
    this.#store = store;
    this.#agents = agents;
  }

  /** Undefined when retention has removed the task. */
  async task({ delivery, message }: MailboxMessage): Promise<QueueTask | undefined> {
    const { tenant, taskId } = delivery;
    const task = taskId === null ? undefined : (await this.#store.tasks.get(tenant, [taskId]))[0];
    if (task === undefined) return undefined;
    const parent =
      task.parentId === null ? undefined : (await this.#store.tasks.get(tenant, [task.parentId]))[0];
    return toTask(messageOf(message), delivery, task, {
      sender: await this.#agents.view(tenant, task.requester),
      recipient: await this.#agents.view(tenant, task.assignee),
      parent,
    });
  }

  async result({ delivery, message }: MailboxMessage): Promise<QueueTaskResult> {
    const { tenant, taskId } = delivery;
    const task = taskId === null ? undefined : (await this.#store.tasks.get(tenant, [taskId]))[0];
    const artifacts = task === undefined ? [] : await this.#store.tasks.artifacts(tenant, task.id);
    return toResult(messageOf(message), task, artifacts);
  }

  /** Queued tasks in the order of their leasing, then leased ones, the oldest lease first. */
  async tasks(filter: QueueTaskFilter): Promise<readonly QueueTaskEntry[]> {
    const queued = filter.state === "in_flight" ? [] : await this.#queued(filter);
    const leased =
      filter.state === "queued" ? [] : await this.#work(filter, "leased", filter.limit - queued.length);
    const entries = await this.#viewed([...queued, ...leased], async (item) => {
      const task = await this.task(item);
      return task === undefined ? undefined : toEntry(item.delivery, task);
    });
    return entries.toSorted(inQueueOrder);
  }

  /** All unacknowledged results, also leased ones. */
  async results({
    tenant,
    agentId,
    nowMs,
    limit,
  }: Pick<QueueTaskFilter, "limit" | "nowMs" | "tenant"> & {
    readonly agentId: AgentId | undefined;
  }): Promise<readonly QueueTaskResult[]> {
    const filter = {
      tenant,
      agentId,
      purpose: "result",
      leasedBeforeMs: undefined,
      deadlineBeforeMs: undefined,
      isOneLine: true,
    } as const;
    const leased = await this.#queue({ ...filter, state: "leased", limit });
    const available = await this.#queue({ ...filter, state: "available", limit: limit - leased.length });
    const unexpired = available.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
    return this.#viewed([...leased, ...unexpired], (item) => this.result(item));
  }

  /** Held work has no position yet, so it comes last. */
  async #queued(filter: QueueTaskFilter): Promise<readonly DeliveryRecord[]> {
    const available = await this.#work(filter, "available", filter.limit);
    const held = await this.#work(filter, "held", filter.limit - available.length);
    return [...available, ...held].filter(({ expiresAtMs }) => expiresAtMs > filter.nowMs);
  }

  #work(
    { tenant, party, leasedBeforeMs, deadlineBeforeMs }: QueueTaskFilter,
    state: "available" | "held" | "leased",
    limit: number,
  ): Promise<readonly DeliveryRecord[]> {
    const filter = { tenant, agentId: undefined, party, leasedBeforeMs, deadlineBeforeMs, limit };
    return this.#queue({ ...filter, purpose: "work", state, isOneLine: state === "available" });
  }

  async #queue(filter: QueueFilter): Promise<readonly DeliveryRecord[]> {
    if (filter.limit <= 0) return [];
    return (await this.#store.deliveries.queue(filter)).map(({ delivery }) => delivery);
  }

  /** As many views as fit into one answer; at least one. */
  async #viewed<View>(
    deliveries: readonly DeliveryRecord[],
    view: (item: MailboxMessage) => Promise<View | undefined>,
  ): Promise<readonly View[]> {
    const views: View[] = [];
    let bytesLeft: number = LIMITS.answerBytesMax;
    for (const delivery of deliveries) {
      const [message] = await this.#store.messages.get(delivery.tenant, [delivery.messageId]);
      const viewed = message === undefined ? undefined : await view({ delivery, message });
      if (viewed === undefined) continue;
      bytesLeft -= bytesAsJson(viewed);
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
