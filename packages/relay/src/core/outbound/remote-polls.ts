import { LIMITS } from "@a2a-relay/protocol";
import type { RelayStore } from "../ports/relay-store.ts";
import type { TimedRemoteTask } from "../ports/remote-tasks.ts";
import type { DueWork } from "./outbound-schedule.ts";
import { joinedKey } from "../mechanisms/joined-key.ts";

type Polled = Pick<TimedRemoteTask, "tenant" | "taskId" | "origin">;

/** More than one tenant can have under way, so that the page always shows one that is not, if there is any. */
const TASKS_OF_TENANT_MAX = 2 * LIMITS.remotePollsMax;

/**
 * Chooses remote tasks to poll now, beside those under way. Each tenant has a quota, and each of its origins a smaller
 * one: a server that hangs holds few polls of a tenant, and no tenant delays another.
 */
export async function chooseDuePolls(
  store: RelayStore,
  underWay: Iterable<TimedRemoteTask>,
  nowMs: number,
): Promise<DueWork<TimedRemoteTask>> {
  const quotas = new PollQuotas(underWay);
  const due: TimedRemoteTask[] = [];
  for (;;) {
    const fullOrigins = quotas.fullOrigins();
    const timed = await store.remoteTasks.timed({ limit: TASKS_OF_TENANT_MAX, fullOrigins });
    const others = timed.filter((task) => !quotas.has(task));
    const begun = others.filter((task) => {
      const isBegun = task.nextAtMs <= nowMs && quotas.hasRoomFor(task);
      if (isBegun) quotas.add(task);
      return isBegun;
    });
    due.push(...begun);
    // Tasks of other origins may be behind those of an origin that is full now.
    if (begun.some((task) => quotas.isFull(task))) continue;
    const later = others.map(({ nextAtMs }) => nextAtMs).filter((atMs) => atMs > nowMs);
    return { due, waitMs: Math.min(...later, Infinity) - nowMs };
  }
}

export function pollKey({ tenant, taskId }: Pick<Polled, "tenant" | "taskId">): string {
  return joinedKey(tenant, taskId);
}

/** Counts polls under way by tenant and origin. */
class PollQuotas {
  readonly #keys = new Set<string>();
  readonly #byTenant = new Map<string, Map<string, number>>();

  constructor(polled: Iterable<Polled>) {
    for (const each of polled) this.add(each);
  }

  has(polled: Pick<Polled, "tenant" | "taskId">): boolean {
    return this.#keys.has(pollKey(polled));
  }

  add(polled: Polled): void {
    const { tenant, origin } = polled;
    this.#keys.add(pollKey(polled));
    const origins = this.#byTenant.get(tenant) ?? new Map<string, number>();
    origins.set(origin, (origins.get(origin) ?? 0) + 1);
    this.#byTenant.set(tenant, origins);
  }

  hasRoomFor(polled: Polled): boolean {
    const counts = [...(this.#byTenant.get(polled.tenant)?.values() ?? [])];
    const all = counts.reduce((sum, count) => sum + count, 0);
    return all < LIMITS.remotePollsMax && !this.isFull(polled);
  }

  /** Whether the tenant may begin no more polls at this origin. */
  isFull({ tenant, origin }: Polled): boolean {
    return isOriginFull(this.#byTenant.get(tenant)?.get(origin) ?? 0);
  }

  /** By tenant. */
  fullOrigins(): ReadonlyMap<string, readonly string[]> {
    const full = [...this.#byTenant].map(([tenant, origins]) => {
      const names = [...origins].filter(([, count]) => isOriginFull(count)).map(([origin]) => origin);
      return [tenant, names] as const;
    });
    return new Map(full);
  }
}

function isOriginFull(count: number): boolean {
  return count >= LIMITS.remotePollsOfOriginMax;
}
