import type { KeyRecord } from "../ports/access.ts";
import type { Principal } from "./principal.ts";

/** Whoever holds the key, as the rules see it. */
export function principalOf({ id: keyId, tenant, agentId, verbs, expiresAtMs }: KeyRecord): Principal {
  const credential = {
    tenant,
    keyId,
    ...(verbs === null ? {} : { verbs: new Set(verbs) }),
    ...(expiresAtMs === null ? {} : { expiresAtMs }),
  };
  return agentId === null
    ? { kind: "operator", isRoot: false, ...credential }
    : { kind: "agent", agentId, ...credential };
}
