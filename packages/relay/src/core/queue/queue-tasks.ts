import { type AgentId, isTerminal, quote, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { RepairSubject } from "../mailboxes/repair-subject.ts";
import { workDeliveries } from "../rules/task-changes.ts";
import type { TaskRecord } from "../ports/tasks.ts";

/**
 * Finds tasks by the id that their requester gave them, or by the relay's own. Two requesters may give two tasks the
 * same id; then a lease or the relay's own id decides.
 */
export class NamedQueueTasks {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  /** The relay's own id of the parent that a sender names; the name itself where the sender has no such task. */
  async parentId(tenant: string, sender: AgentId, name: string): Promise<string> {
    const [named] = await this.#store.tasks.withClientId(tenant, sender, name);
    return named?.id ?? name;
  }

  /**
   * The task that a result is for: an unfinished one, else the one that ended with the same result, so that a repeated
   * result is accepted. Undefined when the worker never had such a task.
   */
  async answered(
    tenant: string,
    worker: AgentId | undefined,
    answer: { readonly name: string; readonly leaseId: string | undefined; readonly digest: string },
  ): Promise<TaskRecord | undefined> {
    const { name, leaseId, digest } = answer;
    const named = await this.#named(tenant, worker, name);
    const assigned = named.filter(({ assignee }) => worker === undefined || assignee === worker);
    const unfinished = assigned.filter(({ state }) => !isTerminal(state));
    if (unfinished.length === 0) {
      return assigned.find(({ resultDigest }) => resultDigest === digest) ?? assigned[0];
    }
    // Without a lease it may repeat the result of another requester's task with the same name.
    const repeated = assigned.filter(
      ({ state, resultDigest }) => isTerminal(state) && resultDigest === digest,
    );
    return this.#theOne(leaseId === undefined ? [...unfinished, ...repeated] : unfinished, name, leaseId);
  }

  /** The subject of a repair: the task, and its work while that is leased. */
  async repaired(
    principal: Principal,
    name: string,
    leaseId: string | undefined,
  ): Promise<RepairSubject | undefined> {
    const party = principal.kind === "agent" ? principal.agentId : undefined;
    const named = await this.#named(principal.tenant, party, name);
    const unfinished = named.filter(({ state }) => !isTerminal(state));
    const task = unfinished.length === 0 ? named[0] : await this.#theOne(unfinished, name, leaseId);
    if (task === undefined) return undefined;
    const work = await this.#workOf(task);
    return { task, delivery: work.find(({ state }) => state === "leased") };
  }

  /**
   * The lease of a result that names none: the one that the agent took without naming a worker. Refuses a result for
   * work that no worker has leased or read.
   */
  async leaseOf(task: TaskRecord, shownAs: string): Promise<string | undefined> {
    const open = workDeliveries(task, await this.#store.deliveries.openOfTasks(task.tenant, [task.id]));
    const leased = open.filter(({ state }) => state === "leased");
    const held = leased.find(({ purpose }) => purpose === "work") ?? leased[0];
    if (held !== undefined) return held.worker === null ? (held.leaseId ?? undefined) : undefined;
    const asked = open.find(({ messageId }) => messageId === task.messageId);
    if (asked === undefined || asked.deliveredAtMs !== null) return undefined;
    throw new RelayError(
      "lease_required",
      `task ${shownAs} is queued, and no worker has taken it; take it first, or pass the lease_id it was taken under`,
    );
  }

  /** The open deliveries that ask the present assignee for the work. */
  async #workOf(task: TaskRecord): Promise<readonly DeliveryRecord[]> {
    const open = workDeliveries(task, await this.#store.deliveries.openOfTasks(task.tenant, [task.id]));
    return open.filter(({ purpose }) => purpose === "work");
  }

  /** Newest first. */
  async #named(tenant: string, party: AgentId | undefined, name: string): Promise<readonly TaskRecord[]> {
    const byClient = await this.#store.tasks.withClientId(tenant, party, name);
    const [byRelay] = await this.#store.tasks.get(tenant, [name]);
    const isTheirs =
      byRelay !== undefined &&
      (party === undefined || byRelay.requester === party || byRelay.assignee === party);
    return isTheirs ? [byRelay, ...byClient.filter(({ id }) => id !== byRelay.id)] : byClient;
  }

  async #theOne(
    tasks: readonly TaskRecord[],
    name: string,
    leaseId: string | undefined,
  ): Promise<TaskRecord | undefined> {
    if (tasks.length === 1) return tasks[0];
    for (const task of leaseId === undefined ? [] : tasks) {
      const work = await this.#workOf(task);
      if (work.some((delivery) => delivery.leaseId === leaseId)) return task;
    }
    const ids = tasks.map(({ id }) => id);
    throw new RelayError(
      "conflict",
      `task_id: ${quote(name)} is the name of ${ids.length} tasks: ${ids.join(", ")}; use the relay's own id, or pass lease_id`,
      { details: { task_ids: ids } },
    );
  }
}
