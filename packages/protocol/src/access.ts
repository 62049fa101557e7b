import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "./delivery.ts";
import { exactly } from "./exactly.ts";
import { LIMITS } from "./limits.ts";

const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
/** An instant: ISO 8601 in UTC, or epoch milliseconds. Answers always have the first form. */
const instant = Type.Union([Type.String({ maxLength: 40 }), Type.Integer({ minimum: 0 })]);
const tenant = Type.String({ minLength: 1, maxLength: LIMITS.tenantCharsMax });

/** A key is shown with every request, or it signs messages and is never shown again. */
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
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.listLimitMax, default: LIMITS.listLimitDefault }),
  ),
});
export type KeysQuery = Static<typeof KeysQuerySchema>;

export const KeyRotateRequestSchema = exactly({
  overlap_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: LIMITS.keyOverlapMsMax,
      default: LIMITS.keyOverlapMsDefault,
      description: "How long the old key goes on working.",
    }),
  ),
});
export type KeyRotateRequest = Static<typeof KeyRotateRequestSchema>;

export const KEY_STATES = ["active", "expired", "revoked"] as const;

/** A key as the API shows it: never the secret. */
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
  /** The newest key that a rotation made of this one. It goes on working when this one is revoked. */
  readonly replaced_by?: string;
}

/** The one answer that has the secret: `key` is shown here and never again. */
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

const nullable = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** What a capability is narrowed to; what is absent or null is not narrowed. Unknown members are kept. */
export const CapabilityScopeSchema = Type.Object(
  {
    version: Type.Optional(Type.Literal(1)),
    peer_pubkey_b58: nullable(Type.String({ maxLength: LIMITS.idCharsMax })),
    task_id: nullable(id),
    lease_id: nullable(id),
    duplicate_risk: Type.Optional(Type.Enum([...DUPLICATE_RISKS, "operator-accepted"] as const)),
    max_uses: nullable(Type.Integer({ minimum: 1 })),
    delegable: Type.Optional(
      Type.Boolean({ description: "Its subject may grant it on, once, no wider than it is." }),
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
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.listLimitMax, default: LIMITS.listLimitDefault }),
  ),
});
export type CapabilitiesQuery = Static<typeof CapabilitiesQuerySchema>;

/** The signed token, exactly what the signature covers and the signature itself. */
export interface CapabilityView {
  readonly id: string;
  readonly domain: "a2a-relay.capability.v1";
  readonly tenant: string;
  readonly nonce: string;
  readonly subject: string;
  readonly subject_pubkey_b58: string;
  /** With the other agent's public key in it. */
  readonly action: string;
  /** As it was asked for; not signed. */
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
  /** It would be honoured now. */
  readonly effective: boolean;
  readonly budget?: { readonly max_uses: number; readonly used: number; readonly remaining: number };
}

export interface CapabilityUsageResponse {
  readonly grants: readonly CapabilityUsage[];
  readonly pageToken?: string;
}
