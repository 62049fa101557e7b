import { A2aError, GUEST, LIMITS, RelayError } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { visibleTask } from "../tasks/visible-task.ts";
import type { A2aCaller } from "./a2a-caller.ts";

/** Which task a caller means, if it may know of it. */
export class A2aTasks {
  readonly #parts: { readonly store: RelayStore; readonly guard: Guard };

  constructor(parts: { readonly store: RelayStore; readonly guard: Guard }) {
    this.#parts = parts;
  }

  /** The task, if the caller takes part in it and asked it of this agent; else it looks as if there were none. */
  async find(caller: A2aCaller, id: string): Promise<TaskRecord> {
    const task = (await this.named(caller, id)) ?? (await this.#visible(caller, id));
    if (!isOf(caller, task)) throw noTask(id);
    return task;
  }

  /** Callers of A2A 0.1 go by the names that they gave their tasks, each of them at one agent. */
  async named(
    caller: Pick<A2aCaller, "agentId" | "principal" | "version">,
    clientId: string,
  ): Promise<TaskRecord | undefined> {
    const { principal, version } = caller;
    if (version !== "0.1") return undefined;
    const requester = principal.kind === "agent" ? principal.agentId : GUEST;
    const { store, guard } = this.#parts;
    const named = await store.tasksWithClientId(principal.tenant, requester, clientId);
    const task = named.find((each) => each.requester === requester);
    if (task === undefined || !isOf(caller, task)) return undefined;
    // An earlier owner of the caller's id took the names of its tasks with it.
    if (task.createdAtMs < (await ownSinceMs(store, principal))) return undefined;
    await guard.authorize(principal, "tasks.read", { parties: [requester] });
    return task;
  }

  async #visible({ principal }: A2aCaller, id: string): Promise<TaskRecord> {
    try {
      return await visibleTask(this.#parts, principal, id);
    } catch (reason) {
      const { code } = RelayError.from(reason);
      // An id that the relay would never give is not there either.
      if (code === "not_found" || code === "invalid_argument" || code === "too_large") throw noTask(id);
      throw reason;
    }
  }
}

function isOf({ agentId }: Pick<A2aCaller, "agentId">, task: TaskRecord): boolean {
  return agentId === undefined || frontOf(task) === agentId || task.assignee === agentId;
}

/** Whom its caller goes on asking about it, whoever works on it. */
function frontOf({ askedOf, handoffs, assignee }: TaskRecord): string {
  return askedOf ?? handoffs[0]?.from ?? assignee;
}

/** From when on what bears the caller's id is its own. */
export async function ownSinceMs(store: RelayStore, principal: Principal): Promise<number> {
  return principal.kind === "agent" ? store.othersBeforeMs(principal.tenant, principal.agentId) : 0;
}

export function noTask(id: string): A2aError {
  return new A2aError("TaskNotFound", `there is no task ${id.slice(0, LIMITS.idCharsMax).toWellFormed()}`);
}
