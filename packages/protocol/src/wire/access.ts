import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "../model/delivery.ts";
import { exactly, idSchema, listLimitSchema, nullable } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";

const id = idSchema;
/** An instant: ISO 8601 in UTC, or epoch milliseconds. Answers always have the first form. */
const instant = Type.Union([Type.String({ maxLength: 40 }), Type.Integer({ minimum: 0 })]);
const tenant = Type.String({ minLength: 1, maxLength: LIMITS.tenantCharsMax });

/** A bearer key is sent with every request; a signing key signs messages and is never sent. */
export const KEY_USES = ["bearer", "sign"] as const;
export type KeyUse = (typeof KEY_USES)[number];

export const KeyCreateRequestSchema = exactly({
  use: Type.Optional(
    Type.Enum(KEY_USES, {
      default: "bearer",
      description:
        "`sign` makes a secret that signs messages for POST /api/a2a/inbox and opens nothing else.",
    }),
  ),
  tenant: Type.Optional(tenant),
  agent_id: Type.Optional(id),
  verbs: Type.Optional(
    Type.Array(Type.String({ maxLength: LIMITS.idCharsMax }), {
      minItems: 1,
      maxItems: 100,
      uniqueItems: true,
    }),
  ),
  expires_at: Type.Optional(Type.Union([instant, Type.Null()])),
});
export type KeyCreateRequest = Static<typeof KeyCreateRequestSchema>;

export const KeysQuerySchema = exactly({
  tenant: Type.Optional(tenant),
  agent: Type.Optional(id),
  page_token: Type.Optional(id),
  limit: listLimitSchema,
});
export type KeysQuery = Static<typeof KeysQuerySchema>;

export const KeyRotateRequestSchema = exactly({
  overlap_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: LIMITS.keyOverlapMsMax,
      default: LIMITS.keyOverlapMsDefault,
      description: "How long the old key keeps working.",
    }),
  ),
});
export type KeyRotateRequest = Static<typeof KeyRotateRequestSchema>;

export const KEY_STATES = ["active", "expired", "revoked"] as const;

/** A key without its secret. */
export interface KeyView {
  readonly key_id: string;
  readonly use: KeyUse;
  readonly tenant: string;
  readonly agent_id?: string;
  readonly verbs?: readonly string[];
  readonly state: (typeof KEY_STATES)[number];
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
  readonly replaces?: string;
  /** The newest key that replaced this one. It keeps working when this one is revoked. */
  readonly replaced_by?: string;
}

/** The only answer that holds the secret. */
export interface KeyCreated extends KeyView {
  readonly key: string;
}

export interface KeysResponse {
  readonly keys: readonly KeyView[];
  readonly pageToken?: string;
}

export interface KeyRotated extends KeyCreated {
  readonly old_key_id: string;
  readonly old_expires_at: string;
}

export const TenantChangeRequestSchema = exactly({ capabilities: Type.Enum(["on", "off"] as const) });
export type TenantChangeRequest = Static<typeof TenantChangeRequestSchema>;

export interface TenantView {
  readonly tenant: string;
  readonly capabilities: "on" | "off";
  readonly created_at?: string;
}

export interface TenantsResponse {
  readonly tenants: readonly TenantView[];
}

/** The limits of a capability; absent or null means no limit. Unknown members are kept. */
export const CapabilityScopeSchema = Type.Object(
  {
    version: Type.Optional(Type.Literal(1)),
    peer_pubkey_b58: nullable(Type.String({ maxLength: LIMITS.idCharsMax })),
    task_id: nullable(id),
    lease_id: nullable(id),
    duplicate_risk: Type.Optional(Type.Enum([...DUPLICATE_RISKS, "operator-accepted"] as const)),
    max_uses: nullable(Type.Integer({ minimum: 1 })),
    delegable: Type.Optional(
      Type.Boolean({ description: "The subject may delegate it once, with the same or a narrower scope." }),
    ),
  },
  { additionalProperties: true, title: "CapabilityScope" },
);
export type CapabilityScope = Static<typeof CapabilityScopeSchema>;

export const CapabilityGrantRequestSchema = exactly({
  subject: id,
  action: Type.String({ minLength: 1, maxLength: 2 * LIMITS.idCharsMax }),
  scope: Type.Optional(CapabilityScopeSchema),
  expires_at: Type.Optional(Type.Union([instant, Type.Null()])),
});
export type CapabilityGrantRequest = Static<typeof CapabilityGrantRequestSchema>;

export const CapabilityRevokeRequestSchema = exactly({ id });

export const CapabilitiesQuerySchema = exactly({
  page_token: Type.Optional(id),
  limit: listLimitSchema,
});
export type CapabilitiesQuery = Static<typeof CapabilitiesQuerySchema>;

/** The signed token: what the signature covers, and the signature. */
export interface CapabilityView {
  readonly id: string;
  readonly domain: "a2a-relay.capability.v1";
  readonly tenant: string;
  readonly nonce: string;
  readonly subject: string;
  readonly subject_pubkey_b58: string;
  /** Contains the public key of the other agent. */
  readonly action: string;
  /** The action as requested; not signed. */
  readonly written_action: string;
  readonly scope: CapabilityScope;
  readonly granted_by: string;
  readonly delegated_from?: string;
  readonly issued_at: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
  readonly signature_b58: string;
}

export interface CapabilitiesResponse {
  readonly capabilities: readonly CapabilityView[];
  readonly pageToken?: string;
}

/** `revoked` is false when it had been revoked before. */
export interface CapabilityRevoked {
  readonly id: string;
  readonly revoked: boolean;
}

export interface CapabilityUsage {
  readonly id: string;
  readonly subject: string;
  readonly subject_pubkey_b58: string;
  readonly action: string;
  readonly written_action: string;
  readonly scope: CapabilityScope;
  readonly expires_at?: string;
  readonly revoked: boolean;
  /** The relay would honour it now. */
  readonly effective: boolean;
  readonly budget?: { readonly max_uses: number; readonly used: number; readonly remaining: number };
}

export interface CapabilityUsageResponse {
  readonly grants: readonly CapabilityUsage[];
  readonly pageToken?: string;
}
