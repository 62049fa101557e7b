import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { messageOf, sign } from "../../packages/relay/testing/signed-message.ts";

/** Values at the edge of something. */
const EDGES: readonly unknown[] = [
  null,
  "",
  " ",
  0,
  -1,
  1.5,
  1e300,
  -1e300,
  2 ** 53,
  2 ** 63,
  true,
  [],
  {},
  [null],
  "..",
  "a/b",
  "\u0000",
  "\ud800",
  "知微",
  "x".repeat(201),
  "__proto__",
  "1969-12-31T23:59:59Z",
  "2026-02-30T00:00:00Z",
  "9999-12-31T23:59:59Z",
  "skill:x",
  "https://a.example",
  "postmaster@relay",
  "operator",
  LULU,
  ZHIWEI,
  "lulu",
  "m1",
];

const anything: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ depthSize: "small" }),
  fc.constantFrom(...EDGES),
);

/** An object with some of the members, at most two of them wrong. */
function almost(members: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  const names = Object.keys(members);
  const wrong = fc.array(fc.tuple(fc.constantFrom(...names, "x_unknown"), anything), { maxLength: 2 });
  const right = fc.oneof(
    fc.constant(names),
    fc.subarray(names),
    fc.subarray(names, { maxLength: Math.min(3, names.length) }).map((some) => [...ALWAYS, ...some]),
  );
  const objects = fc.tuple(right, wrong).map(([kept, replaced]) => ({
    ...Object.fromEntries(Object.entries(members).filter(([name]) => kept.includes(name))),
    ...Object.fromEntries(replaced),
  }));
  return fc.oneof({ weight: 9, arbitrary: objects }, { weight: 1, arbitrary: anything });
}

/** Without these nothing else of a message is checked. */
const ALWAYS = ["from", "to", "body", "type"];

const PARTS = [{ kind: "text", text: "知微" }];
const LEASE = { message_id: "m1", lease_id: "l1" };

const A2A_SEND = {
  message: {
    messageId: "m1",
    role: "ROLE_USER",
    parts: [{ text: "知微你好" }, { data: null }],
    contextId: "c1",
    taskId: "task1",
    metadata: {},
    extensions: ["urn:x"],
  },
  configuration: { returnImmediately: true, historyLength: 1, acceptedOutputModes: ["text/plain"] },
  metadata: { sender_agent_id: LULU },
  tenant: "",
};
const RPC = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: A2A_SEND };

const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "/messages": {
    version: "a2a.v1",
    id: "m1",
    from: LULU,
    to: ZHIWEI,
    type: "request",
    subject: "s",
    body: "知微你好",
    parts: PARTS,
    created_at: "2026-05-08T08:30:00Z",
    urgency: "high",
    needs_reply: true,
    reply_to: "m1",
    thread_id: "t1",
    task_id: "task1",
    parent: "task1",
    deadline_ms: 4_000_000_000_000,
    task_state: "working",
    decision: "accepted",
    attachments: [],
    idempotency_key: "k1",
    idempotency: { duplicate_safety: "idempotent", key: "k1" },
    signature: "x",
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    lease_id: "l1",
  },
  "/a2a": { ...RPC, params: { ...A2A_SEND, metadata: { relay_target_agent_id: ZHIWEI } } },
  [`/agents/${ZHIWEI}/a2a`]: RPC,
  [`/agents/${ZHIWEI}/a2a/message:send`]: A2A_SEND,
  "/messages/batch": { messages: [{ from: LULU, to: ZHIWEI, body: "x" }, { body: 7 }], atomic: false },
  "/api/a2a/inbox": { ...messageOf({ key_id: "key_1" }), signature: `v1,${"A".repeat(43)}=` },
  "/agents/register": {
    agent_id: "kames@kamac",
    card: { name: "K" },
    agent_card: {},
    aliases: ["kames"],
    display_name: "K",
    callback_url: "https://a.example/hook",
    push: null,
    notice: true,
    push_ack: false,
    skills: [{ id: "s", tags: { a: "b" } }],
    representative_queries: ["q"],
    ttl_ms: 1_000,
    pubkey_b58: "7TTGKXuhDL4XHeo2J2ZfKijhY4J8wYhPMHagzdUh6ZSQ",
    key_proof: { signed_at: new Date().toISOString(), signature_b58: "1".repeat(64) },
  },
  [`/agents/${ZHIWEI}/push/rotate`]: { overlap_ms: 0 },
  [`/agents/${ZHIWEI}/push/replay`]: { since: "2026-05-08T08:30:00Z" },
  "/keys": {
    use: "sign",
    tenant: "工作室",
    agent_id: LULU,
    verbs: ["messages.send"],
    expires_at: 4_000_000_000_000,
  },
  "/keys/key_1/rotate": { overlap_ms: 0 },
  "/tenants/工作室": { capabilities: "on" },
  "/capabilities/grant": {
    subject: LULU,
    action: `a2a.send.${ZHIWEI}`,
    scope: {
      version: 1,
      peer_pubkey_b58: "7TTGKXuhDL4XHeo2J2ZfKijhY4J8wYhPMHagzdUh6ZSQ",
      task_id: "task1",
      lease_id: "l1",
      duplicate_risk: "operator-accepted",
      max_uses: 3,
      delegable: true,
    },
    expires_at: 4_000_000_000_000,
  },
  "/capabilities/revoke": { id: "cap_1" },
  [`/mailbox/${ZHIWEI}/ack`]: { message_ids: ["m1", "m2"], leases: [LEASE] },
  [`/mailbox/${ZHIWEI}/lease`]: { max: 1, lease_ms: 1_000, wait_ms: 0, worker: "w1" },
  [`/mailbox/${ZHIWEI}/renew`]: { leases: [LEASE], lease_ms: 1_000 },
  [`/mailbox/${ZHIWEI}/release`]: { leases: [LEASE] },
  [`/mailbox/${ZHIWEI}/fail`]: { ...LEASE, reason: "坏了" },
  "/repair": {
    message_id: "m1",
    task_id: "task1",
    reason: "卡住",
    command: { action: "requeue", duplicate_risk: "idempotent" },
  },
  "/repair/retry-stale": {
    enabled: true,
    min_lease_age_ms: 0,
    max_attempts: 3,
    max_requeues: 1,
    scan_limit: 10,
  },
  "/tasks/{task}/status": { state: "working", text: "在看", parts: PARTS },
  "/tasks/{task}/artifacts": { artifact: { artifactId: "a", parts: PARTS }, append: false },
  "/tasks/{task}/cancel": { reason: "不用了" },
  "/tasks/{task}/complete": {
    text: "好了",
    parts: PARTS,
    artifacts: [],
    result_status: "partial",
    lease_id: "l1",
  },
  "/tasks/{task}/fail": { reason: "坏了", lease_id: "l1" },
  "/tasks/{task}/reject": { reason: "不会", lease_id: "l1" },
  "/a2a/tasks": {
    id: "c1",
    sender: { display: LULU },
    recipient: ZHIWEI,
    intent_text: "翻译",
    task_kind: "translate",
    parent: "{task}",
    deadline_ms: 4_000_000_000_000,
    idempotency: { duplicate_safety: "idempotent", key: "k1" },
  },
  "/a2a/tasks/next": { agent: ZHIWEI, worker: "w1", wait_ms: 0 },
  "/a2a/results": {
    task_id: "c1",
    status: "ok",
    content: [
      { type: "text", text: "好" },
      { type: "json", value: { 页: 1 } },
    ],
    error_message: "坏了",
    lease_id: "l1",
  },
  "/a2a/results/next": { agent: LULU, wait_ms: 0, ack: "explicit" },
  "/a2a/results/ack": { agent: LULU, ...LEASE },
  "/a2a/repair": {
    task_id: "c1",
    reason: "卡住",
    command: { action: "requeue", duplicate_risk: "idempotent", lease_id: "l1" },
  },
  "/a2a/retry-stale": { policy: { enabled: true, min_lease_age_ms: 0 } },
};

const QUERIES: Readonly<Record<string, readonly string[]>> = {
  [`/mailbox/${ZHIWEI}`]: ["since", "limit", "peek"],
  [`/mailbox/${ZHIWEI}/stream`]: ["since", "peek", "notice"],
  [`/mailbox/${ZHIWEI}/ws`]: ["since", "peek", "notice", "quiet"],
  "/tasks/{task}/events": ["since"],
  "/agents": ["page_token", "limit"],
  [`/agents/${ZHIWEI}/push`]: ["state", "limit"],
  "/keys": ["tenant", "agent", "page_token", "limit"],
  "/capabilities": ["page_token", "limit"],
  "/capabilities/usage": ["page_token", "limit"],
  "/tasks": ["state", "agent", "thread_id", "parent", "since", "limit"],
  "/threads": ["agent", "before", "limit"],
  "/events": ["since", "type", "agent", "thread", "limit"],
  "/queue": ["state", "agent", "min_lease_age_ms", "deadline_within_ms", "limit"],
  "/a2a/queue": ["state_filter", "agent", "min_lease_age_ms", "deadline_within_ms", "limit"],
  "/a2a/tasks/recent": ["agent", "limit"],
  "/a2a/results/recent": ["agent", "limit"],
  "/a2a/tasks/next": ["agent", "worker"],
  "/a2a/results/next": ["agent", "ack"],
};

/** As far as an OpenAPI document says what a route reads. */
interface Described {
  readonly requestBody?: unknown;
  readonly parameters?: readonly { readonly in: string }[];
}

describe("whatever is sent", () => {
  let relay: HttpRelay;
  let taskId = "";
  before(async () => {
    relay = await openHttpRelay();
    taskId = (await relay.send({ type: "request" })).task_id;
  });
  after(async () => {
    assert.equal((await relay.get("/journal/verify")).json.ok, true);
    await relay[Symbol.asyncDispose]();
  });

  it("is tried on every route that reads a body or a query", async () => {
    const { paths } = (await relay.get("/openapi.json")).json as unknown as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
    };
    const isTried = (path: string, tried: object): boolean => {
      const pattern = new RegExp(`^${path.replaceAll(/[.]/g, "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
      return Object.keys(tried).some((each) => pattern.test(each));
    };
    for (const [path, methods] of Object.entries(paths)) {
      // The same as POST /agents/register.
      if (path === "/api/agents") continue;
      if (methods["post"]?.requestBody !== undefined) assert.ok(isTried(path, BODIES), `POST ${path}`);
      const hasQuery = methods["get"]?.parameters?.some((parameter) => parameter.in === "query");
      if (hasQuery === true) assert.ok(isTried(path, QUERIES), `GET ${path}`);
    }
  });

  for (const [path, members] of Object.entries(BODIES)) {
    it(`POST ${path} answers with success or with an error of the caller`, async () => {
      const url = encodeURI(path.replace("{task}", taskId));
      await fc.assert(
        fc.asyncProperty(almost(members), async (body) => {
          const { status, json } = await relay.post(url, JSON.stringify(body));
          assert.ok(status < 500, `${status}`);
          // Over JSON-RPC an error of ours would come with 200.
          assert.notEqual((json as { readonly error?: { readonly code?: unknown } }).error?.code, -32_603);
          for (const item of path === "/messages/batch" && status === 200 ? json.results : []) {
            assert.ok(item.status < 500, JSON.stringify(item));
          }
        }),
        { numRuns: 300 },
      );
    });
  }

  for (const [path, members] of Object.entries(BODIES)) {
    it(`POST ${path} takes or refuses every value at the edge, member by member`, async () => {
      const url = encodeURI(path.replace("{task}", taskId));
      const always = path === "/messages" ? ALWAYS : Object.keys(members);
      const right = Object.fromEntries(Object.entries(members).filter(([name]) => always.includes(name)));
      for (const name of Object.keys(members)) {
        for (const edge of EDGES) {
          const { status } = await relay.post(url, JSON.stringify({ ...right, [name]: edge }));
          assert.ok(status < 500, `${name}: ${String(edge)}: ${status}`);
        }
      }
    });
  }

  it("a signed message, whatever it holds, is answered with success or with an error of the caller", async () => {
    const { json: key } = await relay.post("/keys", { agent_id: LULU, use: "sign" });
    const { signature: _, ...members } = BODIES["/messages"] ?? {};
    const messages = almost({ ...members, ...messageOf(key) });
    await fc.assert(
      fc.asyncProperty(messages, fc.uuid(), async (message, nonce) => {
        const said = typeof message === "object" ? message : {};
        const body = sign(key, { ...said, nonce, key_id: key.key_id, signed_at: new Date().toISOString() });
        const { status } = await relay.post("/api/a2a/inbox", JSON.stringify(body));
        assert.ok(status < 500 && status !== 401, `${status}`);
      }),
      { numRuns: 300 },
    );
  });

  for (const [path, names] of Object.entries(QUERIES)) {
    it(`GET ${path} answers with success or with an error of the caller`, async () => {
      const query = fc.array(fc.tuple(fc.constantFrom(...names), anything), { maxLength: 4 });
      // Some routes answer with a stream where one is asked for.
      const accept = fc.constantFrom("application/json", "text/event-stream");
      await fc.assert(
        fc.asyncProperty(query, accept, async (members, accepted) => {
          const texts = members.map(([name, value]) => {
            const text = typeof value === "string" ? value : JSON.stringify(value);
            return `${name}=${encodeURIComponent(text.toWellFormed())}`;
          });
          const url = `${path.replace("{task}", taskId)}?${texts.join("&")}`;
          const { status } = await relay.get(url, { headers: { accept: accepted } });
          assert.ok(status < 500, `${status}`);
        }),
        { numRuns: 100 },
      );
    });
  }

  it("a path answers with success or with an error of the caller", async () => {
    const id = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 20 }),
      fc.constantFrom(LULU, "..", "%"),
    );
    const around = fc.constantFrom(
      "/agents/*",
      "/messages/*",
      "/mailbox/*",
      "/tasks/*",
      "/threads/*",
      "/tasks/*/tree",
      "/t/*/agents",
      "/t/*",
    );
    await fc.assert(
      fc.asyncProperty(around, id, async (path, name) => {
        const { status } = await relay.get(path.replace("*", () => encodeURIComponent(name.toWellFormed())));
        assert.ok(status < 500, `${status}`);
      }),
      { numRuns: 200 },
    );
  });

  it("a credential answers with success or with a refusal", async () => {
    const { key, key_id } = (await relay.post("/keys", {})).json;
    const text = fc.string({ unit: "binary", maxLength: 60 });
    const almostKey = fc
      .tuple(fc.constantFrom(key, key_id, `${key_id}.`), text)
      .map(([begin, end]) => begin + end);
    const shown = fc
      .tuple(fc.constantFrom("", "Bearer ", "bearer", "Basic "), fc.oneof(text, almostKey, fc.constant(key)))
      // What a header cannot carry never leaves the client.
      .map((words) => words.join("").replaceAll(/[^\x20-\x7e\xa0-\xff]/g, "x"));
    await fc.assert(
      fc.asyncProperty(shown, async (authorization) => {
        const { status } = await relay.get("/agents", { headers: { authorization } });
        assert.ok(status === 401 || (status === 200 && authorization.includes(key)), `${status}`);
      }),
      { numRuns: 200 },
    );
  });
});
