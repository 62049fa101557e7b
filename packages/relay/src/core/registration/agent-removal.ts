import { type AgentId, isTerminal, POSTMASTER, TASK_STATES, type TaskState } from "@a2a-relay/protocol";
import { revokedAt } from "../ports/access.ts";
import { keyEvent, workingKeys } from "../keys/key-service.ts";
import { actorName, type OperatorPrincipal, type Principal } from "../access/principal.ts";
import type { Clock } from "../ports/clock.ts";
import { combine, decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { withdraw } from "../rules/delivery-state.ts";
import { failedTaskChanges, undeliveredChanges } from "../rules/undelivered.ts";
import type { MessageDefaults } from "../rules/notices.ts";
import { forgotten } from "./push-endpoint.ts";
import { agentEvent } from "./registration.ts";

export interface RemovalParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
}

const WITHDRAWN_AT_ONCE = 100;
const REMOVED_AT_ONCE = 100;
const UNFINISHED = TASK_STATES.filter((state) => !isTerminal(state));

/** Removes an agent: revokes its keys, withdraws its open messages, fails its tasks. */
export class AgentRemoval {
  readonly #store: RelayStore;
  readonly #clock: Clock;
  readonly #ids: Identifiers;
  readonly #messageTtlMs: number;

  constructor(parts: RemovalParts, settings: { readonly messageTtlMs: number }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#ids = parts.ids;
    this.#messageTtlMs = settings.messageTtlMs;
  }

  async remove(principal: Principal, id: AgentId): Promise<void> {
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const known = (await this.#store.agents.get(tenant, id))?.agent;
      if (known === undefined || known.removedAtMs !== null) return { changes: undefined, answer: undefined };
      const nowMs = this.#clock.nowMs();
      const by = { actor: actorName(principal), atMs: nowMs };
      const keys = await workingKeys(this.#store, tenant, id, nowMs);
      const events = [
        agentEvent("agent.removed", id, by, {}),
        ...keys.map((key) => keyEvent("key.revoked", key, by)),
      ];
      const endpoint = await this.#store.endpoints.get(tenant, id);
      const changes = {
        tenant,
        agents: [{ ...known, removedAtMs: nowMs }],
        pushEndpoints: endpoint === undefined ? [] : [forgotten(endpoint)],
        keys: keys.map((key) => revokedAt(key, nowMs)),
        events,
      };
      return { changes, answer: undefined };
    });
    await this.finish(principal, id);
  }

  /** Finishes removals that a crash interrupted. */
  async finishAll(principal: OperatorPrincipal): Promise<void> {
    let afterId = "";
    for (;;) {
      const page = { tenant: principal.tenant, isRemoved: true, afterId, limit: REMOVED_AT_ONCE };
      const removed = await this.#store.agents.list(page);
      for (const { agent } of removed) await this.finish(principal, agent.id);
      const last = removed.at(-1);
      if (last === undefined) return;
      afterId = last.agent.id;
      await this.#clock.nextTurn();
    }
  }

  /** In bounded steps. A new registration calls it first, so that it never sees old messages. */
  async finish(principal: Principal, id: AgentId): Promise<void> {
    const { tenant } = principal;
    const known = (await this.#store.agents.get(tenant, id))?.agent;
    if (known === undefined || known.removedAtMs === null) return;
    for (;;) {
      const open = await this.#store.deliveries.openOfAgent(tenant, id, WITHDRAWN_AT_ONCE);
      if (open.length === 0) break;
      await Promise.all(open.map((delivery) => this.#withdraw(principal, tenant, delivery.messageId)));
    }
    for (const state of UNFINISHED) await this.#failTasks(principal, id, state);
  }

  /** Tasks whose messages the agent had acknowledged. */
  async #failTasks(principal: Principal, id: AgentId, state: TaskState): Promise<void> {
    const { tenant } = principal;
    const any = { threadId: undefined, parentId: undefined };
    let afterId = "";
    for (;;) {
      const page = { tenant, agentId: id, state, ...any, afterId, limit: WITHDRAWN_AT_ONCE };
      const tasks = await this.#store.tasks.list(page);
      const own = tasks.filter(({ assignee }) => assignee === id);
      await Promise.all(own.map((task) => this.#failTask(principal, task.id)));
      const last = tasks.at(-1);
      if (last === undefined) return;
      afterId = last.id;
    }
  }

  async #failTask(principal: Principal, taskId: string): Promise<void> {
    const { tenant } = principal;
    await decideAndCommit(this.#store, async () => {
      const [task] = await this.#store.tasks.get(tenant, [taskId]);
      if (task === undefined || isTerminal(task.state)) return { changes: undefined, answer: undefined };
      const reason = `${task.assignee} is no longer registered`;
      const by = { actor: actorName(principal), resultFrom: POSTMASTER };
      const changes = await failedTaskChanges(this.#store, this.#defaults(), task, reason, by);
      return { changes: combine(tenant, changes), answer: undefined };
    });
  }

  async #withdraw(principal: Principal, tenant: string, messageId: string): Promise<void> {
    await decideAndCommit(this.#store, async () => {
      const [delivery] = await this.#store.deliveries.get(tenant, [messageId]);
      if (delivery === undefined || delivery.settledAtMs !== null) {
        return { changes: undefined, answer: undefined };
      }
      const defaults = this.#defaults();
      const reason = `${delivery.agentId} is no longer registered`;
      const by = { actor: actorName(principal), resultFrom: POSTMASTER };
      const withdrawn = withdraw(delivery, reason, defaults.nowMs);
      const changes = await undeliveredChanges(this.#store, defaults, withdrawn, by);
      return { changes: combine(tenant, changes), answer: undefined };
    });
  }

  #defaults(): MessageDefaults {
    return { ids: this.#ids, nowMs: this.#clock.nowMs(), messageTtlMs: this.#messageTtlMs };
  }
}
