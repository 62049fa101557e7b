import { messageOf, sign, type SigningKeyShown } from "../../packages/relay/testing/signed-message.ts";

export const CALLERS = [
  "root",
  "operator",
  "lulu",
  "lulu, limited",
  "kames",
  "acme's operator",
  "acme's lulu",
  "anonymous",
  "unknown",
] as const;
export type Caller = (typeof CALLERS)[number];

/** What a call may name: a request from zhiwei to lulu, made anew for each call. */
export interface Fixture {
  readonly messageId: string;
  readonly taskId: string;
  readonly keyId: string;
  /** Signs for lulu. */
  readonly signingKey: SigningKeyShown;
  readonly capabilityId: string;
}

export interface Row {
  readonly route: string;
  /** Everybody may call it, key or not. */
  readonly open?: true;
  readonly to: readonly Caller[];
  /** Callers that get "not found". */
  readonly hidden?: readonly Caller[];
  readonly params?: (fixture: Fixture) => Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: (fixture: Fixture) => object;
  /** The statuses for callers that may call; 200 or 201 by default. */
  readonly answers?: readonly number[];
  /** What those of another tenant are answered, to whom none of it exists. */
  readonly otherTenant?: number;
}

const LULU = "lulu@kamac";
const OPERATORS: readonly Caller[] = ["root", "operator", "acme's operator"];
/** Callers that act for lulu; in another tenant that is another lulu. */
const LULUS: readonly Caller[] = [...OPERATORS, "lulu", "acme's lulu"];
const AGENTS: readonly Caller[] = [...LULUS, "kames"];

const EVERYBODY: readonly Caller[] = [...AGENTS, "anonymous"];
const CARDS = [".well-known/agent-card.json", ".well-known/agent.json", ".well-known/a2a-agent-card"];

const agent = (): { id: string; agent_id: string } => ({ id: LULU, agent_id: LULU });
const message = ({ messageId: id }: Fixture): { id: string } => ({ id });
const task = ({ taskId: id }: Fixture): { id: string } => ({ id });
const key = ({ keyId: id }: Fixture): { id: string } => ({ id });

const open = (route: string, answers?: readonly number[]): Row => ({
  route,
  open: true,
  to: [],
  ...(answers === undefined ? {} : { answers }),
});
const mailbox = (verb: string, body: (fixture: Fixture) => object): Row => ({
  route: `POST /mailbox/{agent_id}/${verb}`,
  to: LULUS,
  params: agent,
  body,
});
const work = (verb: string, body: object): Row => ({
  route: `POST /tasks/{id}/${verb}`,
  to: LULUS,
  hidden: ["kames"],
  params: task,
  body: () => body,
  otherTenant: 404,
});

const LEASE = ({ messageId: message_id }: Fixture): object => ({ message_id, lease_id: "l1" });
const QUEUE_TASK = { id: "c1", sender: LULU, recipient: "zhiwei", intent_text: "查一下" };

/** A question to lulu, which every caller with a key may ask. */
const A2A_SEND = {
  message: { messageId: "m1", role: "ROLE_USER", parts: [{ text: "你好" }] },
  configuration: { returnImmediately: true },
};
const rpc = (params: object): object => ({ jsonrpc: "2.0", id: 1, method: "SendMessage", params });
const rest = (operation: (fixture: Fixture) => string) => (fixture: Fixture) => ({
  agent_id: LULU,
  operation: operation(fixture),
});

/** Every route, and who may call it on what is lulu's. */
export const ROUTES: readonly Row[] = [
  open("GET /"),
  open("GET /docs"),
  open("GET /health"),
  open("GET /openapi.json"),
  open("GET /ready"),
  { route: "GET /metrics", to: OPERATORS },

  { route: "POST /agents/register", to: LULUS, body: () => ({ agent_id: LULU }) },
  { route: "POST /api/agents", to: LULUS, body: () => ({ agent_id: LULU }) },
  { route: "GET /agents", to: AGENTS },
  { route: "GET /agents/{id}", to: AGENTS, params: agent },
  // The default tenant is the relay's public face; a key that is shown is checked all the same.
  ...["card", ...CARDS, ...CARDS.map((card) => `a2a/${card}`)].map((card) => ({
    route: `GET /agents/{id}/${card}`,
    to: EVERYBODY,
    params: agent,
  })),
  ...CARDS.map((card) => open(`GET /${card}`)),
  {
    route: "POST /a2a",
    to: AGENTS,
    body: () => rpc({ ...A2A_SEND, metadata: { relay_target_agent_id: LULU } }),
  },
  { route: "POST /agents/{agent_id}/a2a", to: AGENTS, params: agent, body: () => rpc(A2A_SEND) },
  { route: "GET /agents/{agent_id}/a2a/{operation}", to: AGENTS, params: rest(() => "tasks") },
  {
    route: "POST /agents/{agent_id}/a2a/{operation}",
    to: AGENTS,
    params: rest(() => "message:send"),
    body: () => A2A_SEND,
    // Lulu would ask itself.
    answers: [200, 400],
  },
  {
    route: "DELETE /agents/{agent_id}/a2a/{operation}",
    to: LULUS,
    hidden: ["kames"],
    params: rest(({ taskId }) => `tasks/${taskId}/pushNotificationConfigs/none`),
    otherTenant: 404,
  },
  { route: "POST /agents/{id}/heartbeat", to: LULUS, params: agent },
  { route: "DELETE /agents/{id}", to: LULUS, params: agent },
  // lulu has no webhook, and callers that may read that get 404.
  { route: "GET /agents/{id}/push", to: LULUS, params: agent, answers: [404], otherTenant: 404 },
  { route: "POST /agents/{id}/push/rotate", to: LULUS, params: agent, answers: [404], otherTenant: 404 },
  {
    route: "POST /agents/{id}/push/replay",
    to: LULUS,
    params: agent,
    body: () => ({ since: "2026-05-08T08:30:00Z" }),
    answers: [404],
    otherTenant: 404,
  },

  {
    route: "POST /messages",
    to: LULUS,
    body: () => ({ from: LULU, to: "zhiwei", body: "好" }),
    otherTenant: 404,
  },
  {
    route: "POST /messages/batch",
    to: LULUS,
    body: () => ({ atomic: true, messages: [{ from: LULU, to: "zhiwei", body: "好" }] }),
    otherTenant: 404,
  },
  {
    // The signature says who sent it, not the caller. `inbox.test.ts` has the refusals.
    ...open("POST /api/a2a/inbox"),
    body: ({ signingKey }) => sign(signingKey, messageOf(signingKey, { to: "kames@desk" })),
  },
  { route: "GET /messages/{id}", to: LULUS, hidden: ["kames"], params: message, otherTenant: 404 },

  { route: "GET /mailbox/{agent_id}", to: LULUS, params: agent },
  { route: "GET /mailbox/{agent_id}/stream", to: LULUS, params: agent },
  // A caller that may have the socket is told to upgrade.
  { route: "GET /mailbox/{agent_id}/ws", to: LULUS, params: agent, answers: [400] },
  mailbox("ack", ({ messageId }) => ({ message_ids: [messageId] })),
  mailbox("lease", () => ({})),
  mailbox("renew", (fixture) => ({ ...LEASE(fixture), lease_ms: 1_000 })),
  mailbox("release", LEASE),
  {
    ...mailbox("fail", ({ messageId: message_id }) => ({ message_id, reason: "不行" })),
    otherTenant: 404,
  },

  { route: "GET /tasks", to: AGENTS },
  { route: "GET /tasks/{id}", to: LULUS, hidden: ["kames"], params: task, otherTenant: 404 },
  { route: "GET /tasks/{id}/tree", to: LULUS, hidden: ["kames"], params: task, otherTenant: 404 },
  { route: "GET /tasks/{id}/events", to: LULUS, hidden: ["kames"], params: task, otherTenant: 404 },
  work("status", { state: "working" }),
  work("artifacts", { artifact: { parts: [{ kind: "text", text: "月亮" }] } }),
  work("complete", { text: "好了" }),
  work("fail", { reason: "不行" }),
  work("reject", { reason: "不行" }),
  {
    route: "POST /tasks/{id}/cancel",
    to: [...OPERATORS, "acme's lulu"],
    hidden: ["kames"],
    params: task,
    otherTenant: 404,
  },

  { route: "GET /threads", to: OPERATORS },
  {
    route: "GET /threads/{id}",
    to: OPERATORS,
    params: () => ({ id: "t1" }),
    answers: [404],
    otherTenant: 404,
  },
  { route: "GET /events", to: OPERATORS },
  { route: "GET /queue", to: LULUS, query: `?agent=${LULU}` },
  { route: "GET /journal/verify", to: OPERATORS },
  {
    route: "POST /repair",
    to: OPERATORS,
    body: ({ messageId: message_id }) => ({
      message_id,
      reason: "卡住了",
      command: { action: "requeue", duplicate_risk: "operator_accepted" },
    }),
    answers: [409],
    otherTenant: 404,
  },
  { route: "POST /repair/retry-stale", to: OPERATORS },

  { route: "POST /keys", to: OPERATORS, body: () => ({ agent_id: LULU }) },
  { route: "GET /keys", to: OPERATORS },
  { route: "POST /keys/{id}/rotate", to: OPERATORS, params: key, otherTenant: 404 },
  { route: "POST /keys/{id}/revoke", to: OPERATORS, params: key, otherTenant: 404 },
  { route: "DELETE /keys/{id}", to: OPERATORS, params: key, otherTenant: 404 },
  { route: "GET /tenants", to: OPERATORS },
  {
    route: "POST /tenants/{tenant}",
    to: ["root", "acme's operator"],
    params: () => ({ tenant: "acme" }),
    body: () => ({ capabilities: "off" }),
  },

  {
    route: "POST /capabilities/grant",
    to: OPERATORS,
    body: () => ({ subject: "zhiwei", action: `a2a.send.${LULU}` }),
    otherTenant: 404,
  },
  {
    route: "POST /capabilities/revoke",
    to: LULUS,
    hidden: ["kames"],
    body: ({ capabilityId: id }) => ({ id }),
    otherTenant: 404,
  },
  { route: "GET /capabilities", to: AGENTS },
  { route: "GET /capabilities/usage", to: AGENTS },

  { route: "POST /a2a/tasks", to: LULUS, body: () => QUEUE_TASK, otherTenant: 404 },
  { route: "GET /a2a/tasks/next", to: LULUS, query: `?agent=${LULU}` },
  { route: "POST /a2a/tasks/next", to: LULUS, body: () => ({ agent: LULU }) },
  { route: "GET /a2a/tasks/recent", to: LULUS, query: `?agent=${LULU}` },
  {
    route: "POST /a2a/results",
    to: LULUS,
    hidden: ["kames"],
    body: ({ taskId: task_id }) => ({ task_id, status: "ok", content: [{ type: "text", text: "好" }] }),
    // It was not leased, so it cannot be completed.
    answers: [409],
    otherTenant: 404,
  },
  { route: "GET /a2a/results/next", to: LULUS, query: `?agent=${LULU}` },
  { route: "POST /a2a/results/next", to: LULUS, body: () => ({ agent: LULU }) },
  {
    route: "POST /a2a/results/ack",
    to: LULUS,
    body: (fixture) => ({ agent: LULU, ...LEASE(fixture) }),
    answers: [404, 409],
    otherTenant: 404,
  },
  { route: "GET /a2a/results/recent", to: LULUS, query: `?agent=${LULU}` },
  { route: "GET /a2a/queue", to: LULUS, query: `?agent=${LULU}` },
  {
    route: "POST /a2a/repair",
    to: OPERATORS,
    body: ({ taskId: task_id }) => ({
      task_id,
      reason: "卡住了",
      command: { action: "requeue", duplicate_risk: "operator_accepted" },
    }),
    answers: [409],
    otherTenant: 404,
  },
  { route: "POST /a2a/retry-stale", to: OPERATORS },
  { route: "POST /a2a/compact", to: OPERATORS },
];
