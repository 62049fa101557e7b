import { LIMITS } from "@a2a-relay/protocol";
import type { TimedRemoteTask } from "../ports/remote-tasks.ts";

type Looked = Pick<TimedRemoteTask, "tenant" | "taskId" | "origin">;

/**
 * The tasks elsewhere that are being looked at, or about to be. A server that hangs holds few of the looks of a tenant,
 * and a tenant never keeps another one from beginning one of its own.
 */
export class RemotePolls {
  readonly #tasks = new Set<string>();
  readonly #byTenant = new Map<string, Map<string, number>>();

  constructor(looked: Iterable<Looked>) {
    for (const each of looked) this.add(each);
  }

  has(looked: Pick<Looked, "tenant" | "taskId">): boolean {
    return this.#tasks.has(lookName(looked));
  }

  add(looked: Looked): void {
    const { tenant, origin } = looked;
    this.#tasks.add(lookName(looked));
    const origins = this.#byTenant.get(tenant) ?? new Map<string, number>();
    origins.set(origin, (origins.get(origin) ?? 0) + 1);
    this.#byTenant.set(tenant, origins);
  }

  hasRoomFor(looked: Looked): boolean {
    const counts = [...(this.#byTenant.get(looked.tenant)?.values() ?? [])];
    const all = counts.reduce((sum, count) => sum + count, 0);
    return all < LIMITS.remotePollsMax && !this.isFull(looked);
  }

  /** Its origin has enough to do. */
  isFull({ tenant, origin }: Looked): boolean {
    return isEnough(this.#byTenant.get(tenant)?.get(origin) ?? 0);
  }

  /** By tenant. */
  fullOrigins(): ReadonlyMap<string, readonly string[]> {
    const full = [...this.#byTenant].map(([tenant, origins]) => {
      const names = [...origins].filter(([, count]) => isEnough(count)).map(([origin]) => origin);
      return [tenant, names] as const;
    });
    return new Map(full);
  }
}

function isEnough(count: number): boolean {
  return count >= LIMITS.remotePollsOfOriginMax;
}

export function lookName({ tenant, taskId }: Pick<Looked, "tenant" | "taskId">): string {
  return JSON.stringify([tenant, taskId]);
}
