import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ANY_ANSWER } from "../../testing/any-answer.ts";
import { type WireRequest, WireServer } from "../../testing/wire-server.ts";
import { RelayClient } from "./relay-client.ts";

const ANYTHING = {
  ...ANY_ANSWER,
  name: "card",
  delivery: { state: "dead" },
  task: { id: "t" },
  tree: { task: {}, children: [] },
};

const SIGNED = {
  to: "b",
  body: "hi",
  key_id: "k",
  nonce: "n",
  signed_at: "2026-05-08T08:30:00Z",
  signature: "v1,x",
};

async function setup(options: { readonly apiKey?: string } = {}) {
  const server = await WireServer.start(() => ({ json: ANYTHING }));
  return { server, client: new RelayClient({ url: `${server.url}/`, ...options }) };
}

function line({ method, path, query }: WireRequest): string {
  return `${method} ${path}${query.size === 0 ? "" : `?${query}`}`;
}

describe("RelayClient", () => {
  it("calls each route by its method and path", async () => {
    const { server, client } = await setup();
    await using _ = server;
    const lease = { message_id: "m1", lease_id: "l1" };
    const artifact = { artifactId: "x", parts: [{ text: "hi" }] };
    const calls: readonly [() => Promise<unknown>, string][] = [
      [() => client.register({ agent_id: "a" }), "POST /agents/register"],
      [() => client.agents({ limit: 5, page_token: "a" }), "GET /agents?limit=5&page_token=a"],
      [() => client.agent("a"), "GET /agents/a"],
      [() => client.agentCard("a"), "GET /agents/a/.well-known/agent-card.json"],
      [() => client.deregister("a"), "DELETE /agents/a"],
      [() => client.heartbeat("a"), "POST /agents/a/heartbeat"],
      [() => client.send({ to: "b", body: "hi" }), "POST /messages"],
      [() => client.sendBatch({ messages: [{ to: "b", body: "hi" }] }), "POST /messages/batch"],
      [() => client.inbox(SIGNED), "POST /api/a2a/inbox"],
      [() => client.push("a", { state: "failed", limit: 5 }), "GET /agents/a/push?state=failed&limit=5"],
      [() => client.rotatePushSecret("a", { overlap_ms: 0 }), "POST /agents/a/push/rotate"],
      [() => client.replayPushes("a", { since: "2026-05-08T08:30:00Z" }), "POST /agents/a/push/replay"],
      [() => client.message("m1"), "GET /messages/m1"],
      [() => client.readMailbox("a", { since: "7", peek: true }), "GET /mailbox/a?since=7&peek=true"],
      [() => client.ack("a", { message_ids: ["m1"] }), "POST /mailbox/a/ack"],
      [() => client.lease("a", { max: 2 }), "POST /mailbox/a/lease"],
      [() => client.renew("a", { leases: [lease], lease_ms: 1_000 }), "POST /mailbox/a/renew"],
      [() => client.release("a", { leases: [lease] }), "POST /mailbox/a/release"],
      [() => client.failMessage("a", { ...lease, reason: "no" }), "POST /mailbox/a/fail"],
      [() => client.tasks({ state: "working" }), "GET /tasks?state=working"],
      [() => client.task("t1"), "GET /tasks/t1"],
      [() => client.taskTree("t1"), "GET /tasks/t1/tree"],
      [() => client.reportStatus("t1", { state: "working" }), "POST /tasks/t1/status"],
      [() => client.addArtifact("t1", { artifact }), "POST /tasks/t1/artifacts"],
      [() => client.completeTask("t1", { text: "done" }), "POST /tasks/t1/complete"],
      [() => client.failTask("t1", { reason: "no" }), "POST /tasks/t1/fail"],
      [() => client.rejectTask("t1", { reason: "no" }), "POST /tasks/t1/reject"],
      [() => client.cancelTask("t1"), "POST /tasks/t1/cancel"],
      [() => client.threads({ agent: "a" }), "GET /threads?agent=a"],
      [() => client.thread("th1"), "GET /threads/th1"],
      [() => client.events({ since: "3", wait_ms: 0 }), "GET /events?since=3&wait_ms=0"],
      [() => client.queue({ state: "leased" }), "GET /queue?state=leased"],
      [
        () =>
          client.repair({
            task_id: "t1",
            reason: "stuck",
            command: { action: "requeue", duplicate_risk: "operator_accepted" },
          }),
        "POST /repair",
      ],
      [() => client.retryStale(), "POST /repair/retry-stale"],
      [() => client.verifyJournal(), "GET /journal/verify"],
      [() => client.createKey({ agent_id: "a" }), "POST /keys"],
      [() => client.keys({ tenant: "t", agent: "a" }), "GET /keys?tenant=t&agent=a"],
      [() => client.rotateKey("k1", { overlap_ms: 0 }), "POST /keys/k1/rotate"],
      [() => client.revokeKey("k1"), "POST /keys/k1/revoke"],
      [() => client.tenants(), "GET /tenants"],
      [
        () => client.changeTenant("工作室", { capabilities: "on" }),
        "POST /tenants/%E5%B7%A5%E4%BD%9C%E5%AE%A4",
      ],
      [() => client.health(), "GET /health"],
      [() => client.ready(), "GET /ready"],
      [() => client.metrics(), "GET /metrics"],
      [() => client.openapi(), "GET /openapi.json"],
    ];
    for (const [call] of calls) await call();
    assert.deepEqual(
      server.requests.map(line),
      calls.map(([, expected]) => expected),
    );
  });

  it("hands over one task or one tree as itself", async () => {
    const { server, client } = await setup();
    await using _ = server;
    assert.deepEqual(await client.task("t"), { id: "t" });
    assert.deepEqual(await client.completeTask("t"), { id: "t" });
    assert.deepEqual(await client.taskTree("t"), { task: {}, children: [] });
  });

  it("encodes ids, so that none leaves its segment of the path", async () => {
    const { server, client } = await setup();
    await using _ = server;
    await client.agentCard("翻译/../x?y#z%@demo");
    assert.equal(
      server.requests[0]?.path,
      "/agents/%E7%BF%BB%E8%AF%91%2F..%2Fx%3Fy%23z%25%40demo/.well-known/agent-card.json",
    );
    for (const id of ["", ".", "..", "\ud800"]) {
      await assert.rejects(client.agent(id), { code: "invalid_argument", message: /usable id/ });
    }
  });

  it("sends the key as a bearer token, JSON as JSON, and neither where there is none", async () => {
    const { server, client } = await setup({ apiKey: "k-123" });
    await using _ = server;
    await client.send({ to: "b", body: "知微你好" });
    assert.equal(server.requests[0]?.headers.authorization, "Bearer k-123");
    assert.equal(server.requests[0]?.headers["content-type"], "application/json");
    assert.equal(server.requests[0]?.body["body"], "知微你好");
    const open = new RelayClient({ url: server.url });
    await open.agents();
    assert.equal(server.requests[1]?.headers.authorization, undefined);
    assert.equal(server.requests[1]?.headers["content-type"], undefined);
    // What is signed says itself who it is from.
    await client.inbox(SIGNED);
    assert.equal(server.requests[2]?.headers.authorization, undefined);
    assert.deepEqual(server.requests[2]?.body, SIGNED);
  });

  it("gives a key to each message that nothing else makes recognisable", async () => {
    const { server, client } = await setup();
    await using _ = server;
    const key = "from-the-caller";
    await client.sendBatch({
      messages: [
        { to: "b", body: "1" },
        { to: "b", body: "2", idempotency_key: null },
        { to: "b", body: "3", idempotency_key: key },
        { to: "b", body: "4", idempotency: { duplicate_safety: "idempotent", key } },
        { to: "b", body: "5", id: "m5" },
      ],
    });
    const sent = server.requests[0]?.body["messages"] as Record<string, unknown>[];
    const keys = sent.map((message) => message["idempotency_key"]);
    assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
    assert.match(String(keys[1]), /^[0-9a-f-]{36}$/);
    assert.notEqual(keys[0], keys[1]);
    assert.deepEqual(keys.slice(2), [key, undefined, undefined]);
    assert.deepEqual(sent[3]?.["idempotency"], { duplicate_safety: "idempotent", key });
  });

  it("names artifacts, so that a repeated completion is the same one", async () => {
    const { server, client } = await setup();
    await using _ = server;
    await client.completeTask("t", {
      artifacts: [{ parts: [{ text: "1" }] }, { artifact_id: "mine", parts: [{}] }],
    });
    const sent = server.requests[0]?.body["artifacts"] as Record<string, unknown>[];
    assert.match(String(sent[0]?.["artifactId"]), /^[0-9a-f-]{36}$/);
    assert.equal(sent[1]?.["artifactId"], undefined);
    await client.addArtifact("t", { artifact: { parts: [{ text: "2" }] } });
    const put = server.requests[1]?.body["artifact"] as Record<string, unknown>;
    assert.match(String(put["artifactId"]), /^[0-9a-f-]{36}$/);
  });

  it("refuses what cannot be JSON before anything is sent", async () => {
    const { server, client } = await setup();
    await using _ = server;
    const parts = [{ data: 1n }];
    await assert.rejects(client.send({ to: "b", parts }), { code: "invalid_argument", message: /JSON/ });
    assert.equal(server.requests.length, 0);
  });

  it("goes through the fetch it is given", async () => {
    const seen: string[] = [];
    const client = new RelayClient({
      url: "http://relay.example:9",
      fetch: async (url) => {
        seen.push(url);
        return Response.json({ status: "ok", version: "1" });
      },
    });
    assert.deepEqual(await client.health(), { status: "ok", version: "1" });
    assert.deepEqual(seen, ["http://relay.example:9/health"]);
  });
});
