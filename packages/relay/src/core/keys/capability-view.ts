import { type CapabilityUsage, type CapabilityView, formatInstant } from "@a2a-relay/protocol";
import type { EventDraft } from "../ports/journal.ts";
import type { CapabilityRecord } from "../ports/access.ts";
import { usesLeft } from "../access/capability-scope.ts";
import { CAPABILITY_DOMAIN } from "../access/capability-token.ts";

/** The signed token, as anybody who has the relay's public key could check it. */
export function viewCapability(capability: CapabilityRecord): CapabilityView {
  const { parentId, expiresAtMs, revokedAtMs } = capability;
  return {
    id: capability.id,
    domain: CAPABILITY_DOMAIN,
    tenant: capability.tenant,
    nonce: capability.nonce,
    subject: capability.subject,
    subject_pubkey_b58: capability.subjectKey,
    action: capability.action,
    written_action: capability.writtenAction,
    scope: capability.scope,
    granted_by: capability.grantedBy,
    ...(parentId === null ? {} : { delegated_from: parentId }),
    issued_at: formatInstant(capability.issuedAtMs),
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
    ...(revokedAtMs === null ? {} : { revoked_at: formatInstant(revokedAtMs) }),
    signature_b58: capability.signature,
  };
}

export function viewUsage(capability: CapabilityRecord, effective: boolean): CapabilityUsage {
  const { expiresAtMs, scope, used } = capability;
  const remaining = usesLeft(capability);
  return {
    id: capability.id,
    subject: capability.subject,
    subject_pubkey_b58: capability.subjectKey,
    action: capability.action,
    written_action: capability.writtenAction,
    scope,
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
    revoked: capability.revokedAtMs !== null,
    effective,
    ...(remaining === undefined ? {} : { budget: { max_uses: scope.max_uses ?? 0, used, remaining } }),
  };
}

export function capabilityEvent(
  type: "capability.granted" | "capability.revoked",
  capability: CapabilityRecord,
  by: { readonly actor: string; readonly atMs: number },
): EventDraft {
  const { id, subjectKey, action, scope, parentId, expiresAtMs } = capability;
  const granted = {
    subject_pubkey_b58: subjectKey,
    scope,
    ...(parentId === null ? {} : { delegated_from: parentId }),
    ...(expiresAtMs === null ? {} : { expires_at: formatInstant(expiresAtMs) }),
  };
  return {
    type,
    ...by,
    agentId: capability.subject,
    messageId: null,
    taskId: null,
    threadId: null,
    data: { capability_id: id, action, ...(type === "capability.granted" ? granted : {}) },
  };
}
