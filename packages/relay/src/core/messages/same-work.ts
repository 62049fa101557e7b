import type { RelayStore } from "../environment/relay-store.ts";
import { digestOf } from "./digest.ts";
import { taskKindOf } from "./message-draft.ts";
import type { SendContext } from "./send-plan.ts";

export type SameWork = Pick<SendContext, "cached" | "resultKey" | "running">;

const NOT_SHARED: SameWork = { resultKey: undefined, cached: undefined, running: undefined };

/**
 * Whether work that is asked for was done before, or is under way, for the same sender. Only work that its sender
 * declared idempotent, and gave a key, is ever shared.
 */
export async function findSameWork(
  store: RelayStore,
  asked: Pick<SendContext, "draft" | "recipient" | "sender" | "task" | "tenant">,
  nowMs: number,
): Promise<SameWork> {
  const { draft, task, tenant } = asked;
  const key = draft.idempotencyKey?.trim() ?? "";
  const makesTask = task === undefined && (draft.kind === "request" || draft.kind === "handoff");
  if (!makesTask || draft.duplicateSafety !== "idempotent" || key === "") return NOT_SHARED;
  const resultKey = digestOf([
    await identityOf(store, tenant, asked.sender),
    await identityOf(store, tenant, asked.recipient),
    taskKindOf(draft.given) ?? draft.body,
    key,
  ]);
  const cached = await store.cachedResult(tenant, resultKey, nowMs);
  const running = cached === undefined ? await store.unfinishedWithResultKey(tenant, resultKey) : undefined;
  return { resultKey, cached, running };
}

/** Agents of older stores have no key; their ids stay reserved to them. */
async function identityOf(store: RelayStore, tenant: string, id: SendContext["sender"]): Promise<string> {
  return (await store.publicKeyOf(tenant, id)) ?? id;
}
