import {
  KeyCreatedSchema,
  KeyCreateRequestSchema,
  KeyRotatedSchema,
  KeyRotateRequestSchema,
  KeysQuerySchema,
  KeysResponseSchema,
  KeyViewSchema,
  TenantChangeRequestSchema,
  TenantsResponseSchema,
  TenantViewSchema,
} from "../wire/access.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { AGENT_ERRORS } from "./shared.ts";

const tag = "Keys and tenants";
const params = { id: EXAMPLE_IDS.key };

const revocation = {
  tag,
  verbs: ["keys.write"],
  answers: { 200: { description: "The key", schema: KeyViewSchema } },
  errors: ["not_found", "wrong_state"],
  // A revoked key cannot be revoked again.
  repeat: "if_not_done",
  example: { params },
} as const;

export const keys = {
  create: {
    method: "POST",
    path: "/keys",
    tag,
    summary: "Make a key: for an operator of a tenant, or for one agent; a tenant begins with its first key",
    verbs: ["keys.write"],
    body: KeyCreateRequestSchema,
    answers: { 201: { description: "The key, which is returned only here", schema: KeyCreatedSchema } },
    errors: [...AGENT_ERRORS, "conflict"],
    // A second request would make another key.
    repeat: "if_not_done",
    example: { body: { agent_id: EXAMPLE_IDS.agent, verbs: ["mailbox.read", "mailbox.settle"] } },
  },
  list: {
    method: "GET",
    path: "/keys",
    tag,
    summary: "List keys by id, revoked and expired ones too; never their secrets",
    verbs: ["keys.read"],
    query: KeysQuerySchema,
    answers: {
      200: { description: "Keys, and a pageToken when there are more", schema: KeysResponseSchema },
    },
    errors: AGENT_ERRORS,
    repeat: "always",
    paging: { items: "keys", next: "pageToken", query: "page_token" },
    example: { query: { agent: EXAMPLE_IDS.agent } },
  },
  rotate: {
    method: "POST",
    path: "/keys/{id}/rotate",
    tag,
    summary: "Make a key of the same scope; the old one stays valid for a while",
    verbs: ["keys.write"],
    body: KeyRotateRequestSchema,
    answers: {
      201: {
        description: "The new key, which is returned only here, and when the old one ends",
        schema: KeyRotatedSchema,
      },
    },
    errors: ["not_found", "conflict", "wrong_state"],
    repeat: "if_not_done",
    example: { params, body: { overlap_ms: 3_600_000 } },
  },
  revoke: { ...revocation, method: "POST", path: "/keys/{id}/revoke", summary: "Revoke a key at once" },
  remove: {
    ...revocation,
    method: "DELETE",
    path: "/keys/{id}",
    summary: "The same as POST /keys/{id}/revoke",
  },
} as const satisfies OperationEntries;

export const tenants = {
  list: {
    method: "GET",
    path: "/tenants",
    tag,
    summary: "List tenants: all for the operator of the relay, its own for any other operator",
    verbs: ["tenants.read"],
    answers: { 200: { description: "Tenants by name", schema: TenantsResponseSchema } },
    errors: [],
    repeat: "always",
    example: {},
  },
  change: {
    method: "POST",
    path: "/tenants/{tenant}",
    tag,
    summary: "Switch capabilities on or off in a tenant",
    verbs: ["tenants.write"],
    body: TenantChangeRequestSchema,
    answers: { 200: { description: "The tenant", schema: TenantViewSchema } },
    errors: ["not_found", "wrong_state"],
    repeat: "always",
    example: { params: { tenant: EXAMPLE_IDS.tenant }, body: { capabilities: "off" } },
  },
} as const satisfies OperationEntries;
