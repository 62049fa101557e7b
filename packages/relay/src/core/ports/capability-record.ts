import type { AgentId, CapabilityScope } from "@a2a-relay/protocol";

/**
 * A signed permission. It is kept here and looked up by the caller's own key, never shown by the caller, so
 * there is nothing to steal; the signature finds rows that were written past the relay.
 */
export interface CapabilityRecord {
  readonly tenant: string;
  /** `cap_…` */
  readonly id: string;
  /** Makes two grants of the same thing two tokens. */
  readonly nonce: string;
  readonly subject: AgentId;
  /** What the caller is compared by; `subject` is for people. */
  readonly subjectKey: string;
  /** With the counterparty's key in the place of its name: `a2a.send.<pubkey_b58>`, `a2a.compact`, … */
  readonly action: string;
  /** As it was asked for: for people. */
  readonly writtenAction: string;
  readonly scope: CapabilityScope;
  /** Who granted it, as the journal names them. */
  readonly grantedBy: string;
  /** The capability that was delegated; null when an operator granted it. */
  readonly parentId: string | null;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** Counted only where the scope has `max_uses`. */
  readonly used: number;
  /** The relay's Ed25519 signature, in base58; what it covers is said in `capability-token.ts`. */
  readonly signature: string;
  readonly version: number;
}
