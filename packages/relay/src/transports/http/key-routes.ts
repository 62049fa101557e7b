import { operations } from "@a2a-relay/protocol";
import type { KeyService } from "../../core/keys/key-service.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import { route, type Route } from "./route.ts";

/** API keys over HTTP. */
export function keyRoutes(keys: KeyService): readonly Route[] {
  return [
    route(operations.keys.create, async ({ principal, body }) => ({
      status: 201,
      body: await keys.create(principal, body),
    })),
    route(operations.keys.list, async ({ principal, query }) => ({
      body: await keys.list(principal, query),
    })),
    route(operations.keys.rotate, async ({ principal, params, body }) => ({
      status: 201,
      body: await keys.rotate(principal, params.id, body),
    })),
    ...[operations.keys.revoke, operations.keys.remove].map((operation) =>
      route(operation, async ({ principal, params }) => ({ body: await keys.revoke(principal, params.id) })),
    ),
  ];
}

/** Tenants over HTTP. */
export function tenantRoutes(tenants: TenantService): readonly Route[] {
  return [
    route(operations.tenants.list, async ({ principal }) => ({ body: await tenants.list(principal) })),
    route(operations.tenants.change, async ({ principal, params, body }) => ({
      body: await tenants.change(principal, params.tenant, body),
    })),
  ];
}
