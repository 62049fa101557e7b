import { formatInstant, type KeyUse, type KeyView } from "@a2a-relay/protocol";
import type { EventDraft } from "../ports/journal.ts";
import { hasExpired } from "../access/expiry.ts";
import type { KeyRecord } from "../ports/access.ts";

export function viewKey(key: KeyRecord, nowMs: number): KeyView {
  return {
    key_id: key.id,
    use: useOf(key),
    tenant: key.tenant,
    ...(key.agentId === null ? {} : { agent_id: key.agentId }),
    ...(key.verbs === null ? {} : { verbs: key.verbs }),
    state: stateOf(key, nowMs),
    created_at: formatInstant(key.createdAtMs),
    created_by: key.createdBy,
    ...(key.expiresAtMs === null ? {} : { expires_at: formatInstant(key.expiresAtMs) }),
    ...(key.revokedAtMs === null ? {} : { revoked_at: formatInstant(key.revokedAtMs) }),
    ...(key.replaces === null ? {} : { replaces: key.replaces }),
    ...(key.replacedBy === null ? {} : { replaced_by: key.replacedBy }),
  };
}

export function useOf({ signingSecret }: KeyRecord): KeyUse {
  return signingSecret === null ? "bearer" : "sign";
}

/** What the journal keeps of a key: never its secret, nor its digest. */
export function keyEvent(
  type: "key.created" | "key.revoked" | "key.rotated",
  key: KeyRecord,
  by: { readonly actor: string; readonly atMs: number },
  more: Readonly<Record<string, unknown>> = {},
): EventDraft {
  return {
    type,
    ...by,
    agentId: key.agentId,
    messageId: null,
    taskId: null,
    threadId: null,
    data: {
      key_id: key.id,
      ...(key.signingSecret === null ? {} : { use: useOf(key) }),
      ...(key.agentId === null ? {} : { agent_id: key.agentId }),
      ...(key.verbs === null ? {} : { verbs: key.verbs }),
      ...(key.expiresAtMs === null ? {} : { expires_at: formatInstant(key.expiresAtMs) }),
      ...more,
    },
  };
}

function stateOf(key: KeyRecord, nowMs: number): KeyView["state"] {
  if (key.revokedAtMs !== null) return "revoked";
  return hasExpired(key.expiresAtMs, nowMs) ? "expired" : "active";
}
