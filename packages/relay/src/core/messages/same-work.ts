import type { RelayStore } from "../ports/relay-store.ts";
import { digestOf } from "../rules/digest.ts";
import { taskKindOf } from "./message-draft.ts";
import type { SendContext } from "./send-plan.ts";

export type SameWork = Pick<SendContext, "cached" | "resultKey" | "running">;

export const NOT_SHARED: SameWork = { resultKey: undefined, cached: undefined, running: undefined };

/** Only work that its sender declared idempotent, and gave a key, is ever shared. */
export function mayBeShared(draft: SendContext["draft"], task: SendContext["task"]): boolean {
  const makesTask = task === undefined && (draft.kind === "request" || draft.kind === "handoff");
  return makesTask && draft.duplicateSafety === "idempotent" && keyOf(draft) !== "";
}

/** Whether work that may be shared was done before, or is under way, for the same sender. */
export async function findSameWork(
  store: RelayStore,
  asked: Pick<SendContext, "draft" | "recipient" | "sender" | "tenant">,
  nowMs: number,
): Promise<SameWork> {
  const { draft, tenant } = asked;
  const resultKey = digestOf([
    await identityOf(store, tenant, asked.sender),
    await identityOf(store, tenant, asked.recipient),
    taskKindOf(draft.given) ?? draft.body,
    keyOf(draft),
  ]);
  const cached = await store.cachedResult(tenant, resultKey, nowMs);
  const running = cached === undefined ? await store.unfinishedWithResultKey(tenant, resultKey) : undefined;
  return { resultKey, cached, running };
}

function keyOf({ idempotencyKey }: SendContext["draft"]): string {
  return idempotencyKey?.trim() ?? "";
}

/** Agents of older stores have no key; their ids stay reserved to them. */
async function identityOf(store: RelayStore, tenant: string, id: SendContext["sender"]): Promise<string> {
  return (await store.publicKeyOf(tenant, id)) ?? id;
}
