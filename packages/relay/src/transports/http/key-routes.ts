import {
  KeyCreateRequestSchema,
  KeyRotateRequestSchema,
  KeysQuerySchema,
  TenantChangeRequestSchema,
} from "@a2a-relay/protocol";
import type { KeyService } from "../../core/keys/key-service.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import { type Answer, type Call, param, type Route } from "./route.ts";

const tag = "Keys and tenants";

/** API keys over HTTP. */
export function keyRoutes(keys: KeyService): readonly Route[] {
  const revoke = async (call: Call): Promise<Answer> => ({
    body: await keys.revoke(call.principal, param(call, "id")),
  });
  return [
    {
      method: "POST",
      path: "/keys",
      tag,
      summary:
        "Make a key: for an operator of a tenant, or for one agent; a tenant begins with its first key",
      body: KeyCreateRequestSchema,
      answers: { 201: "The key, which is returned only here" },
      handle: async ({ principal, body }) => ({ status: 201, body: await keys.create(principal, body) }),
    },
    {
      method: "GET",
      path: "/keys",
      tag,
      summary: "List keys by id, revoked and expired ones too; never their secrets",
      query: KeysQuerySchema,
      answers: { 200: "Keys, and a pageToken when there are more" },
      handle: async ({ principal, query }) => ({ body: await keys.list(principal, query) }),
    },
    {
      method: "POST",
      path: "/keys/{id}/rotate",
      tag,
      summary: "Make a key of the same scope; the old one stays valid for a while",
      body: KeyRotateRequestSchema,
      answers: { 201: "The new key, which is returned only here, and when the old one ends" },
      handle: async (call) => ({
        status: 201,
        body: await keys.rotate(call.principal, param(call, "id"), call.body),
      }),
    },
    {
      method: "POST",
      path: "/keys/{id}/revoke",
      tag,
      summary: "Revoke a key at once",
      answers: { 200: "The key" },
      handle: revoke,
    },
    {
      method: "DELETE",
      path: "/keys/{id}",
      tag,
      summary: "The same as POST /keys/{id}/revoke",
      answers: { 200: "The key" },
      handle: revoke,
    },
  ];
}

/** Tenants over HTTP. */
export function tenantRoutes(tenants: TenantService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/tenants",
      tag,
      summary: "List tenants: all for the operator of the relay, its own for any other operator",
      answers: { 200: "Tenants by name" },
      handle: async ({ principal }) => ({ body: await tenants.list(principal) }),
    },
    {
      method: "POST",
      path: "/tenants/{tenant}",
      tag,
      summary: "Switch capabilities on or off in a tenant",
      body: TenantChangeRequestSchema,
      answers: { 200: "The tenant" },
      handle: async (call) => ({
        body: await tenants.change(call.principal, param(call, "tenant"), call.body),
      }),
    },
  ];
}
