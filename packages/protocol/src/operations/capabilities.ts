import {
  CapabilitiesQuerySchema,
  CapabilitiesResponseSchema,
  CapabilityGrantRequestSchema,
  CapabilityRevokedSchema,
  CapabilityRevokeRequestSchema,
  CapabilityUsageResponseSchema,
  CapabilityViewSchema,
} from "../wire/access.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries } from "./operation.ts";
import { AGENT_ERRORS } from "./shared.ts";

const tag = "Capabilities";
const { agent, peer, capability } = EXAMPLE_IDS;

export const capabilities = {
  grant: {
    method: "POST",
    path: "/capabilities/grant",
    tag,
    summary: "Allow an agent one action; an operator grants, an agent passes on what is delegable",
    verbs: ["capabilities.grant"],
    body: CapabilityGrantRequestSchema,
    answers: { 201: { description: "The signed capability", schema: CapabilityViewSchema } },
    errors: [...AGENT_ERRORS, "not_found", "wrong_state"],
    // A second request would grant it twice.
    repeat: "if_not_done",
    example: { body: { subject: agent, action: `a2a.send.${peer}`, scope: { max_uses: 5 } } },
  },
  revoke: {
    method: "POST",
    path: "/capabilities/revoke",
    tag,
    summary: "Revoke a capability, and all that were delegated from it",
    verbs: ["capabilities.revoke"],
    body: CapabilityRevokeRequestSchema,
    answers: {
      200: {
        description: "Whether it was revoked now; false when it was revoked before",
        schema: CapabilityRevokedSchema,
      },
    },
    errors: ["not_found"],
    repeat: "always",
    example: { body: { id: capability } },
  },
  list: {
    method: "GET",
    path: "/capabilities",
    tag,
    summary: "Capabilities by id; an agent sees those that it holds or granted",
    verbs: ["capabilities.read"],
    query: CapabilitiesQuerySchema,
    answers: {
      200: {
        description: "Signed capabilities, and a pageToken when there are more",
        schema: CapabilitiesResponseSchema,
      },
    },
    errors: [],
    repeat: "always",
    paging: { items: "capabilities", next: "pageToken", query: "page_token" },
    example: { query: { limit: 10 } },
  },
  usage: {
    method: "GET",
    path: "/capabilities/usage",
    tag,
    summary: "The same with their remaining budgets, and whether they are valid now",
    verbs: ["capabilities.read"],
    query: CapabilitiesQuerySchema,
    answers: {
      200: {
        description: "Grants with their budgets, and a pageToken when there are more",
        schema: CapabilityUsageResponseSchema,
      },
    },
    errors: [],
    repeat: "always",
    paging: { items: "grants", next: "pageToken", query: "page_token" },
    example: { query: { limit: 10 } },
  },
} as const satisfies OperationEntries;
