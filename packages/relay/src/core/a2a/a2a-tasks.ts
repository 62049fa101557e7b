import { A2aError, assertCleanJson, GUEST, LIMITS, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { visibleTask } from "../tasks/task-view.ts";
import type { A2aCaller } from "./a2a-request.ts";
import { ownedSinceMs } from "../rules/agent-owner.ts";

/** Finds the task that an A2A caller names. */
export class A2aTasks {
  readonly #parts: { readonly store: RelayStore; readonly guard: Guard };

  constructor(parts: { readonly store: RelayStore; readonly guard: Guard }) {
    this.#parts = parts;
  }

  /** Any task that the caller is no party to, or asked of another agent, is "not found". */
  async find(caller: A2aCaller, id: string): Promise<TaskRecord> {
    const task = (await this.named(caller, id)) ?? (await this.#visible(caller, id));
    if (!isOf(caller, task)) throw noTask(id);
    return task;
  }

  /** Callers of A2A 0.1 name tasks by the ids that they gave them. */
  async named(
    caller: Pick<A2aCaller, "agentId" | "principal" | "version">,
    clientId: string,
  ): Promise<TaskRecord | undefined> {
    const { principal, version } = caller;
    if (version !== "0.1") return undefined;
    assertCleanJson(clientId, "id");
    const requester = principal.kind === "agent" ? principal.agentId : GUEST;
    const { store, guard } = this.#parts;
    const tasks = await store.tasks.withClientId(principal.tenant, requester, clientId);
    const task = tasks.find((each) => each.requester === requester);
    if (task === undefined || !isOf(caller, task)) return undefined;
    // Tasks of an earlier owner of the caller's id are not the caller's.
    if (task.createdAtMs < (await ownSinceMs(store, principal))) return undefined;
    await guard.authorize(principal, "tasks.read", { parties: [requester] });
    return task;
  }

  async #visible({ principal }: A2aCaller, id: string): Promise<TaskRecord> {
    try {
      return await visibleTask(this.#parts, principal, id);
    } catch (reason) {
      const { code } = RelayError.from(reason);
      // No task has an id that the relay would refuse.
      if (code === "not_found" || code === "invalid_argument" || code === "too_large") throw noTask(id);
      throw reason;
    }
  }
}

function isOf({ agentId }: Pick<A2aCaller, "agentId">, task: TaskRecord): boolean {
  return agentId === undefined || endpointAgentOf(task) === agentId || task.assignee === agentId;
}

/** The agent at whose endpoint the task was requested; it stays the same after handoffs. */
function endpointAgentOf({ askedOf, handoffs, assignee }: TaskRecord): string {
  return askedOf ?? handoffs[0]?.from ?? assignee;
}

/** Records from before this time belong to an earlier owner of the caller's id. */
export async function ownSinceMs(store: RelayStore, principal: Principal): Promise<number> {
  return principal.kind === "agent" ? ownedSinceMs(store, principal.tenant, principal.agentId) : 0;
}

export function noTask(id: string): A2aError {
  return new A2aError("TaskNotFound", `there is no task ${id.slice(0, LIMITS.idCharsMax).toWellFormed()}`);
}

/** Callers of A2A 0.1 read the ids that they gave their tasks. */
export function taskIdFor({ version }: A2aCaller, { id, clientId }: TaskRecord): string {
  return version === "0.1" ? (clientId ?? id) : id;
}
