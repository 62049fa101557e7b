import { type AgentId, isTerminal, quote, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { DeliveryRecord } from "../ports/deliveries.ts";
import type { RepairSubject } from "../mailboxes/repair-subject.ts";
import { workDeliveries } from "../rules/task-changes.ts";
import type { TaskRecord } from "../ports/tasks.ts";

/**
 * Tasks by the names that callers have for them: the id that the requester gave, or the relay's own. Two
 * requesters may give two tasks the same one; then a lease, or the relay's own id, tells them apart.
 */
export class NamedQueueTasks {
  readonly #store: RelayStore;

  constructor(store: RelayStore) {
    this.#store = store;
  }

  /** The relay's own id of the parent that a sender names; its words where it knows no such task. */
  async parentId(tenant: string, sender: AgentId, name: string): Promise<string> {
    const [named] = await this.#store.tasksWithClientId(tenant, sender, name);
    return named?.id ?? name;
  }

  /**
   * The task that a worker means: among those that it has not finished, else the one that it ended so, which makes
   * a result that comes twice the same. Undefined when it was never given such a task.
   */
  async answered(
    tenant: string,
    worker: AgentId | undefined,
    answer: { readonly name: string; readonly leaseId: string | undefined; readonly digest: string },
  ): Promise<TaskRecord | undefined> {
    const { name, leaseId, digest } = answer;
    const named = await this.#named(tenant, worker, name);
    const given = named.filter(({ assignee }) => worker === undefined || assignee === worker);
    const unfinished = given.filter(({ state }) => !isTerminal(state));
    if (unfinished.length === 0) {
      return given.find(({ resultDigest }) => resultDigest === digest) ?? given[0];
    }
    // Without a lease it may be what ended another's task of that name, sent again, and is not for this requester.
    const repeated = given.filter(({ state, resultDigest }) => isTerminal(state) && resultDigest === digest);
    return this.#theOne(leaseId === undefined ? [...unfinished, ...repeated] : unfinished, name, leaseId);
  }

  /** What a repair is about: the task, and its work while somebody has it. */
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
    const mail = await this.workOf(task);
    return { task, delivery: mail.find(({ state }) => state === "leased") };
  }

  /**
   * The lease under which a result without one is accepted: the caller's own, because nobody told workers of this
   * agent apart. Refused where the work is still in the queue, so that nobody can have done it.
   */
  async leaseOf(task: TaskRecord, shownAs: string): Promise<string | undefined> {
    const open = workDeliveries(task, await this.#store.openDeliveriesOfTask(task.tenant, task.id));
    const leased = open.filter(({ state }) => state === "leased");
    const held = leased.find(({ purpose }) => purpose === "work") ?? leased[0];
    if (held !== undefined) return held.worker === null ? (held.leaseId ?? undefined) : undefined;
    const asked = open.find(({ messageId }) => messageId === task.messageId);
    if (asked === undefined || asked.deliveredAtMs !== null) return undefined;
    throw new RelayError(
      "lease_required",
      `task ${shownAs} is queued, and nobody has taken it; take it first, or pass the lease_id it was taken under`,
    );
  }

  /** The mail that asks the present assignee for the work. */
  async workOf(task: TaskRecord): Promise<readonly DeliveryRecord[]> {
    const open = workDeliveries(task, await this.#store.openDeliveriesOfTask(task.tenant, task.id));
    return open.filter(({ purpose }) => purpose === "work");
  }

  /** Newest first. */
  async #named(tenant: string, party: AgentId | undefined, name: string): Promise<readonly TaskRecord[]> {
    const byClient = await this.#store.tasksWithClientId(tenant, party, name);
    const byRelay = await this.#store.task(tenant, name);
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
      const mail = await this.workOf(task);
      if (mail.some((delivery) => delivery.leaseId === leaseId)) return task;
    }
    const ids = tasks.map(({ id }) => id);
    throw new RelayError(
      "conflict",
      `task_id: ${quote(name)} is the name of ${ids.length} tasks: ${ids.join(", ")}; use the relay's own id, or pass lease_id`,
      { details: { task_ids: ids } },
    );
  }
}
