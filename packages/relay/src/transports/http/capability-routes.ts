import { operations } from "@a2a-relay/protocol";
import type { CapabilityService } from "../../core/keys/capability-service.ts";
import { route, type Route } from "./route.ts";

/** Capabilities over HTTP. */
export function capabilityRoutes(capabilities: CapabilityService): readonly Route[] {
  return [
    route(operations.capabilities.grant, async ({ principal, body }) => ({
      status: 201,
      body: await capabilities.grant(principal, body),
    })),
    route(operations.capabilities.revoke, async ({ principal, body }) => ({
      body: await capabilities.revoke(principal, body),
    })),
    route(operations.capabilities.list, async ({ principal, query }) => ({
      body: await capabilities.list(principal, query),
    })),
    route(operations.capabilities.usage, async ({ principal, query }) => ({
      body: await capabilities.usage(principal, query),
    })),
  ];
}
