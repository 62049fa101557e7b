import { AgentViewSchema, type RegisterRequest, RegisterRequestSchema } from "../model/agent.ts";
import { AgentRemovedSchema, AgentsResponseSchema, RegisterResponseSchema } from "../wire/answers.ts";
import { AgentsQuerySchema } from "../wire/requests.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries, Repeat } from "./operation.ts";
import { AGENT_ERRORS, cardAnswers } from "./shared.ts";

const tag = "Agents";
const params = { id: EXAMPLE_IDS.agent };

const registration = {
  method: "POST",
  tag,
  verbs: ["agents.write"],
  body: RegisterRequestSchema,
  answers: {
    201: { description: "Registered", schema: RegisterResponseSchema },
    200: { description: "Updated; omitted fields keep their values", schema: RegisterResponseSchema },
  },
  errors: ["conflict"],
  // Each repetition of a registration without an id would make one more agent.
  repeat: ({ agent_id }: RegisterRequest): Repeat => (agent_id === undefined ? "if_not_done" : "always"),
  example: {
    body: {
      agent_id: EXAMPLE_IDS.agent,
      display_name: "Lulu",
      skills: [{ id: "review", description: "Reviews pull requests" }],
      ttl_ms: 60_000,
    },
  },
} as const;

export const agents = {
  register: { ...registration, path: "/agents/register", summary: "Register an agent, or update it" },
  registerAtApi: { ...registration, path: "/api/agents", summary: "The same as POST /agents/register" },
  list: {
    method: "GET",
    path: "/agents",
    tag,
    summary: "List agents by id",
    verbs: ["agents.read"],
    query: AgentsQuerySchema,
    answers: {
      200: { description: "Agents, and a pageToken when there are more", schema: AgentsResponseSchema },
    },
    errors: [],
    repeat: "always",
    paging: { items: "agents", next: "pageToken", query: "page_token" },
    example: { query: { limit: 10 } },
  },
  get: {
    method: "GET",
    path: "/agents/{id}",
    tag,
    summary: "One agent, by id or alias",
    verbs: ["agents.read"],
    answers: { 200: { description: "The agent", schema: AgentViewSchema } },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params },
  },
  card: {
    method: "GET",
    path: "/agents/{id}/.well-known/agent-card.json",
    tag: "A2A",
    summary: "The agent's A2A card, with the relay's interfaces in front",
    open: "unless-keyed",
    verbs: ["agents.read"],
    answers: cardAnswers,
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params },
  },
  remove: {
    method: "DELETE",
    path: "/agents/{id}",
    tag,
    summary: "Deregister: open messages are withdrawn, their senders are told",
    verbs: ["agents.read", "agents.write"],
    answers: { 200: { description: "Which agent was removed", schema: AgentRemovedSchema } },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params },
  },
  heartbeat: {
    method: "POST",
    path: "/agents/{id}/heartbeat",
    tag,
    summary: "Report that the agent is online",
    verbs: ["agents.read", "agents.write"],
    answers: { 200: { description: "The agent with its presence", schema: AgentViewSchema } },
    errors: AGENT_ERRORS,
    repeat: "always",
    example: { params },
  },
} as const satisfies OperationEntries;
