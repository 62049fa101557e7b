import { type AgentId, LIMITS, RelayError } from "@a2a-relay/protocol";
import type { AccessStore, KeyRecord } from "../ports/access.ts";
import { hasExpired } from "../access/expiry.ts";

/** The keys that open something for an agent now; page by page past those that no longer do. */
export async function workingKeys(
  store: AccessStore,
  tenant: string,
  agentId: AgentId,
  nowMs: number,
): Promise<readonly KeyRecord[]> {
  const working: KeyRecord[] = [];
  let afterId = "";
  for (;;) {
    const page = await store.keys({ tenant, agentId, afterId, limit: LIMITS.listLimitMax });
    working.push(...page.filter((key) => key.revokedAtMs === null && !hasExpired(key.expiresAtMs, nowMs)));
    const last = page.at(-1);
    if (last === undefined) return working;
    afterId = last.id;
  }
}

/** All keys of an agent are revoked in one commit when it leaves, so there must not be too many. */
export async function assertRoomForKey(
  store: AccessStore,
  tenant: string,
  agentId: AgentId,
  nowMs: number,
): Promise<void> {
  if ((await workingKeys(store, tenant, agentId, nowMs)).length < LIMITS.agentKeysMax) return;
  throw new RelayError(
    "resource_exhausted",
    `${agentId} has ${LIMITS.agentKeysMax} keys that work, which is the most; revoke some first`,
  );
}
