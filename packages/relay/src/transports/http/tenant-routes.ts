import { TenantChangeRequestSchema } from "@a2a-relay/protocol";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import { param, type Route } from "./route.ts";

const tag = "Keys and tenants";

/** The organisations of this relay over HTTP. */
export function tenantRoutes(tenants: TenantService): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/tenants",
      tag,
      summary: "List tenants: all for whoever runs the relay, its own for any other operator",
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
