import {
  CapabilitiesQuerySchema,
  CapabilityGrantRequestSchema,
  CapabilityRevokeRequestSchema,
} from "@a2a-relay/protocol";
import type { CapabilityService } from "../../core/keys/capability-service.ts";
import type { Route } from "./route.ts";

const tag = "Capabilities";

/** Capabilities over HTTP. */
export function capabilityRoutes(capabilities: CapabilityService): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/capabilities/grant",
      tag,
      summary: "Allow an agent one action; an operator grants, an agent passes on what is delegable",
      body: CapabilityGrantRequestSchema,
      answers: { 201: "The signed capability" },
      handle: async ({ principal, body }) => ({
        status: 201,
        body: await capabilities.grant(principal, body),
      }),
    },
    {
      method: "POST",
      path: "/capabilities/revoke",
      tag,
      summary: "Revoke a capability, and all that were delegated from it",
      body: CapabilityRevokeRequestSchema,
      answers: { 200: "Whether it was revoked now; false when it was revoked before" },
      handle: async ({ principal, body }) => ({ body: await capabilities.revoke(principal, body) }),
    },
    {
      method: "GET",
      path: "/capabilities",
      tag,
      summary: "Capabilities by id; an agent sees those that it holds or granted",
      query: CapabilitiesQuerySchema,
      answers: { 200: "Signed capabilities, and a pageToken when there are more" },
      handle: async ({ principal, query }) => ({ body: await capabilities.list(principal, query) }),
    },
    {
      method: "GET",
      path: "/capabilities/usage",
      tag,
      summary: "The same with their remaining budgets, and whether they are valid now",
      query: CapabilitiesQuerySchema,
      answers: { 200: "Grants with their budgets, and a pageToken when there are more" },
      handle: async ({ principal, query }) => ({ body: await capabilities.usage(principal, query) }),
    },
  ];
}
