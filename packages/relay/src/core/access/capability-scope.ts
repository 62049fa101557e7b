import {
  canonicalJson,
  type CapabilityScope,
  type DuplicateRisk,
  formatInstant,
  LIMITS,
  quote,
  RelayError,
} from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import { isPublicKey } from "../rules/ed25519.ts";

/** The parts of an act that a scope can narrow. */
export interface ScopedRequest {
  /** Public keys of the other agents. */
  readonly peers: readonly string[];
  /** The task's id and the name that its requester gave it. */
  readonly taskIds: readonly string[];
  readonly leaseId: string | undefined;
  readonly duplicateRisk: DuplicateRisk | undefined;
}

/** In the order in which refusals name them. Each holds one value. */
const NARROWINGS = ["peer_pubkey_b58", "task_id", "lease_id", "duplicate_risk"] as const;
const UNDERSTOOD: ReadonlySet<string> = new Set([...NARROWINGS, "version", "max_uses", "delegable"]);

/** Brings equal scopes to one form, which is signed and compared. */
export function normalizeScope(given: CapabilityScope = {}): CapabilityScope {
  const members = Object.entries(given).filter(
    ([name, value]) => !(UNDERSTOOD.has(name) && (value === null || value === undefined)),
  );
  const scope = Object.fromEntries(members) as CapabilityScope;
  if (scope.peer_pubkey_b58 != null && !isPublicKey(scope.peer_pubkey_b58)) {
    throw new RelayError(
      "invalid_argument",
      `scope.peer_pubkey_b58: ${quote(scope.peer_pubkey_b58)} is no public key; GET /agents/{id} shows an agent's pubkey_b58`,
    );
  }
  const size = Buffer.byteLength(canonicalJson(scope));
  if (size > LIMITS.capabilityScopeBytesMax) {
    throw new RelayError(
      "too_large",
      `scope: ${size} bytes of JSON, at most ${LIMITS.capabilityScopeBytesMax} are kept`,
    );
  }
  return scope.duplicate_risk === "operator-accepted"
    ? { ...scope, duplicate_risk: "operator_accepted" }
    : scope;
}

/** Why the scope does not admit the request; undefined when it does. Unknown members narrow nothing. */
export function scopeRefusal(scope: CapabilityScope, request: ScopedRequest): string | undefined {
  const { peer_pubkey_b58: peer, task_id: taskId, lease_id: leaseId, duplicate_risk: risk } = scope;
  if (peer != null && !request.peers.includes(peer)) {
    return "it is for the peer_pubkey_b58 of another agent";
  }
  if (taskId != null && !request.taskIds.includes(taskId)) return `it is for task_id ${quote(taskId)} only`;
  if (leaseId != null && request.leaseId !== leaseId) {
    return request.leaseId === undefined
      ? `it is for lease_id ${quote(leaseId)} only, and the request names no lease`
      : `it is for lease_id ${quote(leaseId)} only`;
  }
  if (risk != null && request.duplicateRisk !== risk) return `it is for duplicate_risk ${quote(risk)} only`;
  return undefined;
}

/** Undefined: unlimited. */
export function usesLeft({ scope, used }: Pick<CapabilityRecord, "scope" | "used">): number | undefined {
  return scope.max_uses == null ? undefined : Math.max(0, scope.max_uses - used);
}

/** Why `child` would allow more than `parent`; undefined when it may be delegated. */
export function widening(
  parent: Pick<CapabilityRecord, "scope" | "used" | "expiresAtMs">,
  child: Pick<CapabilityRecord, "scope" | "expiresAtMs">,
): string | undefined {
  for (const name of narrowingsOf(parent.scope)) {
    const kept = parent.scope[name as keyof CapabilityScope];
    if (canonicalJson(child.scope[name as keyof CapabilityScope]) !== canonicalJson(kept)) {
      return `scope.${name} must stay ${quote(kept)}`;
    }
  }
  if (child.scope.delegable === true) return "scope.delegable: what was delegated is not delegated again";
  const left = usesLeft(parent);
  if (left !== undefined && (child.scope.max_uses ?? Infinity) > left) {
    return `scope.max_uses must be at most ${left}, which is what is left`;
  }
  const endsMs = parent.expiresAtMs;
  if (endsMs !== null && (child.expiresAtMs ?? Infinity) > endsMs) {
    return `expires_at must be ${formatInstant(endsMs)} or earlier`;
  }
  return undefined;
}

/** Includes unknown members: a later relay may give them a meaning. */
function narrowingsOf(scope: CapabilityScope): readonly string[] {
  const strange = Object.keys(scope).filter((name) => !UNDERSTOOD.has(name));
  return [...NARROWINGS.filter((name) => scope[name] != null), ...strange];
}
