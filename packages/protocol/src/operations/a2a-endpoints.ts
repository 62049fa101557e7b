import { Type } from "typebox";
import { LIMITS } from "../base/limits.ts";
import { openObject } from "../base/schema.ts";
import { AgentCardSchema } from "../model/agent.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import { named, type OperationEntries, type OperationEntry } from "./operation.ts";
import { AGENT_ERRORS, cardAnswers, SEND_ERRORS } from "./shared.ts";

const tag = "A2A";
const { agent, task } = EXAMPLE_IDS;

const JsonRpcRequestSchema = Type.Object(
  {
    jsonrpc: Type.Literal("2.0"),
    id: Type.Union([Type.String(), Type.Number()]),
    method: Type.String({
      description:
        "SendMessage, GetTask, … of A2A 1.0; message/send, tasks/get, … of 0.3 and 0.2; tasks/send of 0.1.",
    }),
    params: Type.Object({}, { additionalProperties: true }),
  },
  { title: "JsonRpcRequest" },
);

// What the members hold depends on the dialect of the caller, so that their types stay open.
const JsonRpcResponseSchema = Type.Unsafe<unknown>(
  Type.Object(
    {
      jsonrpc: Type.Literal("2.0"),
      id: Type.Union([Type.String(), Type.Number(), Type.Null()]),
      result: Type.Optional(Type.Unknown()),
      error: Type.Optional(
        Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) }),
      ),
    },
    { title: "JsonRpcResponse" },
  ),
);

/** A task, a message, a list or a push configuration, as A2A's HTTP+JSON binding defines it. */
const A2aAnswerSchema = Type.Unsafe<unknown>(openObject({}, "A2aAnswer"));

const message = { messageId: "m-12", role: "ROLE_USER", parts: [{ text: "Please review PR 12" }] };
const configuration = { returnImmediately: true };
const rpc = (params: object): object => ({ jsonrpc: "2.0", id: 1, method: "SendMessage", params });

const endpoint = { tag, waits: true, streams: "on request", repeat: "if_not_done" } as const;
const rpcEndpoint = {
  ...endpoint,
  method: "POST",
  verbs: ["messages.send"],
  body: JsonRpcRequestSchema,
  bodyBytesMax: LIMITS.bodyBytesMax,
  event: JsonRpcResponseSchema,
  answers: {
    200: { description: "The JSON-RPC response, or a stream of them", schema: JsonRpcResponseSchema },
  },
  errors: SEND_ERRORS,
} as const;
const restEndpoint = {
  ...endpoint,
  path: "/agents/{agent_id}/a2a/{operation}",
  isOpenEnded: true,
  event: A2aAnswerSchema,
  answers: { 200: { description: "The A2A answer, or a stream of it", schema: A2aAnswerSchema } },
  errors: SEND_ERRORS,
} as const;

const endpoints = {
  relay: {
    ...rpcEndpoint,
    path: "/a2a",
    summary: "The relay's A2A endpoint: for the agent that the message names, or for the relay itself",
    example: {
      body: rpc({ message, configuration, metadata: { relay_target_agent_id: agent } }),
    },
  },
  agent: {
    ...rpcEndpoint,
    path: "/agents/{agent_id}/a2a",
    summary: "The agent's own A2A endpoint, over JSON-RPC, in every dialect",
    example: { params: { agent_id: agent }, body: rpc({ message, configuration }) },
  },
  restGet: {
    ...restEndpoint,
    method: "GET",
    summary:
      "A2A over HTTP+JSON: tasks, tasks/{id}, tasks/{id}:subscribe, tasks/{id}/pushNotificationConfigs[/{cid}], extendedAgentCard",
    verbs: ["tasks.list"],
    example: { params: { agent_id: agent, operation: "tasks" } },
  },
  restPost: {
    ...restEndpoint,
    method: "POST",
    summary:
      "A2A over HTTP+JSON: message:send, message:stream, tasks/{id}:cancel, tasks/{id}:subscribe, tasks/{id}/pushNotificationConfigs",
    verbs: ["messages.send"],
    body: Type.Object({}, { additionalProperties: true }),
    example: { params: { agent_id: agent, operation: "message:send" }, body: { message, configuration } },
  },
  restDelete: {
    ...restEndpoint,
    method: "DELETE",
    summary: "A2A over HTTP+JSON: tasks/{id}/pushNotificationConfigs/{cid}",
    verbs: ["tasks.read"],
    example: { params: { agent_id: agent, operation: `tasks/${task}/pushNotificationConfigs/none` } },
  },
} as const satisfies OperationEntries;

const card = { method: "GET", tag, answers: cardAnswers, repeat: "always" } as const;

const relayCard = <const Path extends OperationEntry["path"]>(path: Path) =>
  ({
    ...card,
    path,
    summary: "The relay's own A2A card",
    open: true,
    verbs: [],
    errors: [],
    example: {},
  }) as const;

const agentCard = <const Path extends OperationEntry["path"]>(path: Path) =>
  ({
    ...card,
    path,
    summary: "The agent's A2A card, with the relay's interfaces in front",
    open: "unless-keyed",
    verbs: ["agents.read"],
    errors: AGENT_ERRORS,
    example: { params: { id: agent } },
  }) as const;

/** Cards, at the paths where clients of each version request them. The newest of an agent is `agents.card`. */
const relayCards = {
  current: relayCard("/.well-known/agent-card.json"),
  // Only clients older than 0.3 use it.
  old: relayCard("/.well-known/agent.json"),
  legacy: relayCard("/.well-known/a2a-agent-card"),
} as const satisfies OperationEntries;

const agentCards = {
  old: agentCard("/agents/{id}/.well-known/agent.json"),
  legacy: agentCard("/agents/{id}/.well-known/a2a-agent-card"),
  // Some clients expect the card below the address that they call.
  currentAtEndpoint: agentCard("/agents/{id}/a2a/.well-known/agent-card.json"),
  oldAtEndpoint: agentCard("/agents/{id}/a2a/.well-known/agent.json"),
  legacyAtEndpoint: agentCard("/agents/{id}/a2a/.well-known/a2a-agent-card"),
  written: {
    ...agentCard("/agents/{id}/card"),
    summary: "The agent's card as its owner wrote it",
    answers: { ...cardAnswers, 200: { description: "The card", schema: AgentCardSchema } },
  },
} as const satisfies OperationEntries;

/** The A2A endpoints and cards: routes of the relay whose requests A2A defines. */
export const a2aEndpoints = named({ a2a: endpoints, relayCards, agentCards });
