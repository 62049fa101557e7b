import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const REQUEUE = { action: "requeue", duplicate_risk: "operator_accepted" };

describe("GET /threads and /threads/{id}", () => {
  it("show conversations and their messages", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ thread_id: "线程-1", subject: "你好" });
    await relay.send({ from: ZHIWEI, to: LULU, thread_id: "线程-1" });
    const { threads } = (await relay.get("/threads?agent=lulu&limit=10")).json;
    assert.deepEqual(
      threads.map(({ thread_id, subject, message_count }) => [thread_id, subject, message_count]),
      [["线程-1", "你好", 2]],
    );
    const { status, json } = await relay.get(`/threads/${encodeURIComponent("线程-1")}`);
    assert.deepEqual([status, json.messages.length], [200, 2]);
    await relay.refused(relay.get("/threads/nothing"), "not_found");
    await relay.refused(relay.get("/threads/..%2F"), "invalid_argument");
    await relay.refused(relay.get("/threads?limit=0"), "invalid_argument");
    await relay.refused(relay.get("/threads?before=x"), "invalid_argument");
    await relay.refused(relay.get("/threads?agent=missing"), "unknown_agent");
  });
});

describe("GET /events", () => {
  it("gives the journal behind a cursor, filtered", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ thread_id: "t1" });
    const all = (await relay.get("/events")).json;
    assert.deepEqual(
      all.events.map(({ type }) => type),
      ["agent.registered", "key.created", "agent.registered", "key.created", "message.accepted"],
    );
    assert.equal(all.has_more, false);
    const count = async (query: string): Promise<number> =>
      (await relay.get(`/events?${query}`)).json.events.length;
    assert.equal(await count(`since=${all.cursor}`), 0);
    assert.equal(await count("type=message.accepted"), 1);
    assert.equal(await count(`agent=${LULU}`), 3);
    assert.equal(await count("thread=t1"), 1);
    assert.equal(await count("limit=1"), 1);
    await relay.refused(
      relay.get("/events?type=message.sent"),
      "invalid_argument",
      /there are access\.denied, .*agent\.registered/,
    );
    await relay.refused(relay.get("/events?since=x"), "invalid_argument");
    await relay.refused(relay.get("/events?limit=-1"), "invalid_argument");
  });
});

describe("GET /queue", () => {
  it("shows deliveries by state, age of lease and deadline", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    await relay.lease();
    await relay.send({ type: "request", deadline_ms: Date.now() + 60_000 });
    const { entries, totals } = (await relay.get("/queue")).json;
    assert.equal(entries.length, 2);
    assert.deepEqual(totals, { held: 0, available: 1, leased: 1 });
    const states = async (query: string): Promise<readonly string[]> =>
      (await relay.get(`/queue?${query}`)).json.entries.map(({ state }) => state);
    assert.deepEqual(await states("state=leased"), ["leased"]);
    assert.deepEqual(await states("min_lease_age_ms=3600000"), ["available"]);
    assert.deepEqual(await states("deadline_within_ms=120000"), ["available"]);
    assert.deepEqual(await states("deadline_within_ms=1"), []);
    assert.deepEqual((await states("limit=1")).length, 1);
    for (const query of ["state=queued", "limit=0", "min_lease_age_ms=-1", "deadline_within_ms=x"]) {
      await relay.refused(relay.get(`/queue?${query}`), "invalid_argument");
    }
  });
});

describe("POST /repair", () => {
  it("requeues and forces errors, guarded by the lease that was read", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    const { message_id, lease_id } = await relay.lease();
    const stale = { message_id, reason: "卡住", command: { ...REQUEUE, lease_id: "older" } };
    await relay.refused(relay.post("/repair", stale), "lease_lost", /list the queue again/);
    const requeued = await relay.post("/repair", {
      message_id,
      reason: "卡住",
      command: { ...REQUEUE, lease_id },
    });
    assert.deepEqual(requeued.json, {
      message_id,
      task_id,
      action: "requeued",
      state: "available",
      attempt: 1,
    });
    await relay.refused(relay.post("/repair", { message_id, reason: "x", command: REQUEUE }), "wrong_state");
    await relay.lease();
    const command = { action: "force_error", message: "worker is lost" };
    const forced = await relay.post("/repair", { task_id, reason: "还是卡住", command });
    assert.deepEqual(
      [forced.json.action, forced.json.state, forced.json.attempt],
      ["forced_error", "dead", 2],
    );
    assert.equal((await relay.get(`/tasks/${task_id}`)).json.task.status_text, "worker is lost");
  });

  it("refuses orders that are none", async () => {
    await using relay = await openHttpRelay();
    const reason = "x";
    const wrong = [
      undefined,
      {},
      { message_id: "m", command: REQUEUE },
      { message_id: "m", reason: " ", command: REQUEUE },
      { message_id: "m", reason, command: { action: "requeue" } },
      { message_id: "m", reason, command: { action: "drop" } },
      { message_id: "m", reason, command: { action: "force_error", message: "" } },
      { reason, command: REQUEUE },
      { message_id: "m", task_id: "t", reason, command: REQUEUE },
    ];
    for (const body of wrong) await relay.refused(relay.post("/repair", body), "invalid_argument");
    await relay.refused(relay.post("/repair", { message_id: "m", reason, command: REQUEUE }), "not_found");
  });
});

describe("POST /repair/retry-stale", () => {
  it("reports without enabled, requeues with it", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ idempotency: { duplicate_safety: "idempotent", key: "k1" } });
    const { message_id } = await relay.lease();
    const dry = await relay.post("/repair/retry-stale");
    assert.deepEqual([dry.status, dry.json.considered, dry.json.skipped[0]?.reason], [200, 1, "disabled"]);
    const young = await relay.post("/repair/retry-stale", { enabled: true });
    assert.equal(young.json.skipped[0]?.reason, "lease_too_young");
    const done = await relay.post("/repair/retry-stale", { enabled: true, min_lease_age_ms: 0 });
    assert.equal(done.json.requeued[0]?.message_id, message_id);
    await relay.refused(relay.post("/repair/retry-stale", { enabled: 1 }), "invalid_argument");
    await relay.refused(relay.post("/repair/retry-stale", { scan_limit: 0 }), "invalid_argument");
  });
});

describe("GET /journal/verify", () => {
  it("says that all is in order", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    const { status, json } = await relay.get("/journal/verify");
    assert.equal(status, 200);
    assert.equal(json.ok, true);
  });
});
