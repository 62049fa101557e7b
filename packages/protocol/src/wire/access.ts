import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "../model/delivery.ts";
import { exactly, type Frozen, idSchema, instantSchema, listLimitSchema, nullable } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";

const id = idSchema;
/** An instant: ISO 8601 in UTC, or epoch milliseconds. Answers always have the first form. */
const instant = Type.Union([Type.String({ maxLength: 40 }), Type.Integer({ minimum: 0 })]);
const tenant = Type.String({ minLength: 1, maxLength: LIMITS.tenantCharsMax });

/** What a caller may do; a key may be limited to some of them. */
export const VERBS = [
  "agents.read",
  "agents.write",
  "capabilities.grant",
  "capabilities.read",
  "capabilities.revoke",
  "events.read",
  "journal.verify",
  "keys.read",
  "keys.write",
  "mail.compact",
  "mailbox.read",
  "mailbox.settle",
  "messages.read",
  "messages.send",
  "metrics.read",
  "push.read",
  "push.write",
  "queue.read",
  "repair.write",
  "task-queue.read",
  "tasks.cancel",
  "tasks.list",
  "tasks.read",
  "tasks.work",
  "tenants.read",
  "tenants.write",
  "threads.read",
] as const;
export type Verb = (typeof VERBS)[number];

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

const keyMembers = {
  key_id: Type.String(),
  use: Type.Enum(KEY_USES),
  tenant: Type.String(),
  agent_id: Type.Optional(Type.String()),
  verbs: Type.Optional(Type.Array(Type.String())),
  state: Type.Enum(KEY_STATES),
  created_at: instantSchema,
  created_by: Type.String(),
  expires_at: Type.Optional(instantSchema),
  revoked_at: Type.Optional(instantSchema),
  replaces: Type.Optional(Type.String()),
  replaced_by: Type.Optional(
    Type.String({
      description: "The newest key that replaced this one. It keeps working when this one is revoked.",
    }),
  ),
};
const createdKeyMembers = { ...keyMembers, key: Type.String() };

/** A key without its secret. */
export const KeyViewSchema = Type.Object(keyMembers, { title: "Key" });
export type KeyView = Frozen<Static<typeof KeyViewSchema>>;

/** The only answer that holds the secret. */
export const KeyCreatedSchema = Type.Object(createdKeyMembers, { title: "KeyCreated" });
export type KeyCreated = Frozen<Static<typeof KeyCreatedSchema>>;

export const KeysResponseSchema = Type.Object({
  keys: Type.Array(KeyViewSchema),
  pageToken: Type.Optional(Type.String()),
});
export type KeysResponse = Frozen<Static<typeof KeysResponseSchema>>;

export const KeyRotatedSchema = Type.Object(
  { ...createdKeyMembers, old_key_id: Type.String(), old_expires_at: instantSchema },
  { title: "KeyRotated" },
);
export type KeyRotated = Frozen<Static<typeof KeyRotatedSchema>>;

export const TenantChangeRequestSchema = exactly({ capabilities: Type.Enum(["on", "off"] as const) });
export type TenantChangeRequest = Static<typeof TenantChangeRequestSchema>;

export const TenantViewSchema = Type.Object(
  {
    tenant: Type.String(),
    capabilities: Type.Enum(["on", "off"] as const),
    created_at: Type.Optional(instantSchema),
  },
  { title: "Tenant" },
);
export type TenantView = Frozen<Static<typeof TenantViewSchema>>;

export const TenantsResponseSchema = Type.Object({ tenants: Type.Array(TenantViewSchema) });
export type TenantsResponse = Frozen<Static<typeof TenantsResponseSchema>>;

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
export const CapabilityViewSchema = Type.Object(
  {
    id: Type.String(),
    domain: Type.Literal("a2a-relay.capability.v1"),
    tenant: Type.String(),
    nonce: Type.String(),
    subject: Type.String(),
    subject_pubkey_b58: Type.String(),
    action: Type.String({ description: "Contains the public key of the other agent." }),
    written_action: Type.String({ description: "The action as requested; not signed." }),
    scope: CapabilityScopeSchema,
    granted_by: Type.String(),
    delegated_from: Type.Optional(Type.String()),
    issued_at: instantSchema,
    expires_at: Type.Optional(instantSchema),
    revoked_at: Type.Optional(instantSchema),
    signature_b58: Type.String(),
  },
  { title: "Capability" },
);
export type CapabilityView = Frozen<Static<typeof CapabilityViewSchema>>;

export const CapabilitiesResponseSchema = Type.Object({
  capabilities: Type.Array(CapabilityViewSchema),
  pageToken: Type.Optional(Type.String()),
});
export type CapabilitiesResponse = Frozen<Static<typeof CapabilitiesResponseSchema>>;

export const CapabilityRevokedSchema = Type.Object({
  id: Type.String(),
  revoked: Type.Boolean({ description: "False when it had been revoked before." }),
});
export type CapabilityRevoked = Frozen<Static<typeof CapabilityRevokedSchema>>;

export const CapabilityUsageSchema = Type.Object(
  {
    id: Type.String(),
    subject: Type.String(),
    subject_pubkey_b58: Type.String(),
    action: Type.String(),
    written_action: Type.String(),
    scope: CapabilityScopeSchema,
    expires_at: Type.Optional(instantSchema),
    revoked: Type.Boolean(),
    effective: Type.Boolean({ description: "The relay would honour it now." }),
    budget: Type.Optional(
      Type.Object({ max_uses: Type.Integer(), used: Type.Integer(), remaining: Type.Integer() }),
    ),
  },
  { title: "CapabilityUsage" },
);
export type CapabilityUsage = Frozen<Static<typeof CapabilityUsageSchema>>;

export const CapabilityUsageResponseSchema = Type.Object({
  grants: Type.Array(CapabilityUsageSchema),
  pageToken: Type.Optional(Type.String()),
});
export type CapabilityUsageResponse = Frozen<Static<typeof CapabilityUsageResponseSchema>>;
