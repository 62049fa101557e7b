import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const MAILBOX = `/mailbox/${ZHIWEI}`;

describe("GET /mailbox/{agent_id}", () => {
  it("gives items with id and message_id, sender, status and the parameters of an A2A send", async () => {
    await using relay = await openHttpRelay();
    const { message_id, task_id } = await relay.send({ type: "request" });
    const { status, json } = await relay.get(MAILBOX);
    assert.equal(status, 200);
    const [item] = json.messages;
    assert.ok(item);
    assert.deepEqual(
      [item.id, item.message_id, item.task_id, item.status, item.sender_agent_id],
      [message_id, message_id, task_id, "PENDING", LULU],
    );
    assert.equal(item.message.body, "知微你好");
    const { messageId, parts } = item.a2a_payload["message"] as Record<string, unknown>;
    assert.deepEqual([messageId, parts], [message_id, [{ kind: "text", text: "知微你好" }]]);
    assert.equal(typeof json.cursor, "string");
    assert.equal((await relay.get(MAILBOX)).json.messages[0]?.status, "DELIVERED");
  });

  it("pages with since and limit, and reads without a mark with peek", async () => {
    await using relay = await openHttpRelay();
    const ids = [await relay.send(), await relay.send(), await relay.send()].map(
      ({ message_id }) => message_id,
    );
    const first = await relay.get(`${MAILBOX}?limit=2&peek=true`);
    assert.deepEqual(
      first.json.messages.map(({ id, status }) => [id, status]),
      [
        [ids[0], "PENDING"],
        [ids[1], "PENDING"],
      ],
    );
    const rest = await relay.get(`${MAILBOX}?since=${first.json.cursor}&peek=1`);
    assert.deepEqual(
      rest.json.messages.map(({ id }) => id),
      [ids[2]],
    );
  });

  const wrong = [
    "limit=0",
    "limit=-5",
    "limit=501",
    "limit=ten",
    "limit=1&limit=2",
    "limit=99999999999999999999",
    "since=x",
    "since=-1",
    "wait_ms=-1",
    "wait_ms=60001",
    "wait_ms=1.5",
    "peek=maybe",
  ];
  for (const query of wrong) {
    it(`refuses ${query}`, async () => {
      await using relay = await openHttpRelay();
      const [field = ""] = query.split("=");
      await relay.refused(relay.get(`${MAILBOX}?${query}`), "invalid_argument", new RegExp(`^${field}: `));
    });
  }

  it("exists only for registered agents", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get("/mailbox/missing"), "unknown_agent");
    await relay.refused(relay.get("/mailbox/postmaster@relay"), "unknown_agent");
  });
});

describe("POST /mailbox/{agent_id}/ack", () => {
  it("acknowledges what it can and answers each for itself", async () => {
    await using relay = await openHttpRelay();
    const { message_id } = await relay.send();
    await relay.send();
    const { json } = await relay.post(`${MAILBOX}/ack`, { message_ids: [message_id, "nothing"] });
    assert.equal(json.acknowledged, 1);
    assert.deepEqual(
      json.results.map((item) => [item.message_id, item.ok, item.error?.code]),
      [
        [message_id, true, undefined],
        ["nothing", false, "not_found"],
      ],
    );
    const held = await relay.lease();
    const bare = await relay.post(`${MAILBOX}/ack`, { message_ids: [held.message_id] });
    assert.equal(bare.json.results[0]?.error?.code, "lease_required");
    assert.equal((await relay.post(`${MAILBOX}/ack`, { leases: [held] })).json.acknowledged, 1);
  });

  it("refuses what names no messages", async () => {
    await using relay = await openHttpRelay();
    for (const body of [
      { message_ids: "m" },
      { message_ids: [7] },
      { message_ids: [""] },
      { leases: ["l"] },
      [],
      7,
    ]) {
      await relay.refused(relay.post(`${MAILBOX}/ack`, body), "invalid_argument");
    }
    await relay.refused(relay.post(`${MAILBOX}/ack`), "invalid_argument");
    const message_ids = Array.from({ length: 1_001 }, () => "m");
    await relay.refused(relay.post(`${MAILBOX}/ack`, { message_ids }), "too_large");
    await relay.refused(relay.post("/mailbox/missing/ack", { message_ids: [] }), "unknown_agent");
  });
});

describe("leases over HTTP", () => {
  it("are taken, renewed, given back and taken again", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    const taken = await relay.post(`${MAILBOX}/lease`, { max: 5, lease_ms: 60_000, worker: "w1" });
    const [item] = taken.json.messages;
    assert.ok(item?.lease.expires_at);
    assert.deepEqual([item.lease.attempt, item.lease.worker], [1, "w1"]);
    assert.equal(Date.parse(item.lease.expires_at) - Date.parse(item.lease.leased_at), 60_000);
    const ref = { message_id: item.message_id, lease_id: item.lease.id };
    const renewed = await relay.post(`${MAILBOX}/renew`, { leases: [ref], lease_ms: 120_000 });
    assert.equal(renewed.json.renewed, 1);
    assert.ok((renewed.json.results[0]?.lease?.expires_at ?? "") > item.lease.expires_at);
    assert.equal((await relay.post(`${MAILBOX}/release`, { leases: [ref] })).json.released, 1);
    const again = await relay.post(`${MAILBOX}/lease`, {});
    assert.equal(again.json.messages[0]?.lease.attempt, 2);
    const late = await relay.post(`${MAILBOX}/ack`, { leases: [ref] });
    assert.equal(late.json.results[0]?.error?.code, "lease_lost");
  });

  it("may be asked for without a body", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    const { status, json } = await relay.post(`${MAILBOX}/lease`);
    assert.deepEqual([status, json.messages.length], [200, 1]);
  });

  it("end with /fail, which tells the sender", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    const held = await relay.lease();
    const bare = relay.post(`${MAILBOX}/fail`, { message_id: held.message_id, reason: "x" });
    await relay.refused(bare, "lease_required");
    const stale = { ...held, lease_id: "another", reason: "x" };
    await relay.refused(relay.post(`${MAILBOX}/fail`, stale), "lease_lost");
    await relay.refused(relay.post(`${MAILBOX}/fail`, { ...held, reason: " " }), "invalid_argument", /blank/);
    const { json } = await relay.post(`${MAILBOX}/fail`, { ...held, reason: "看不懂" });
    assert.deepEqual([json.delivery.state, json.delivery.reason], ["dead", "看不懂"]);
    await relay.refused(relay.post(`${MAILBOX}/fail`, { ...held, reason: "x" }), "wrong_state");
    await relay.refused(relay.post(`${MAILBOX}/fail`, { message_id: "nothing", reason: "x" }), "not_found");
    const { messages } = (await relay.get("/mailbox/lulu")).json;
    assert.match(messages[0]?.message.body ?? "", /看不懂/);
  });

  const wrong: readonly [path: string, body: unknown][] = [
    ["lease", { max: 0 }],
    ["lease", { lease_ms: 5 }],
    ["lease", { wait_ms: "soon" }],
    ["lease", []],
    ["renew", {}],
    ["renew", { leases: [], lease_ms: 1_000 }],
    ["renew", { leases: [{ message_id: "m", lease_id: "l" }] }],
    ["release", {}],
    ["release", { leases: [{ message_id: "m" }] }],
    ["fail", {}],
    ["fail", { message_id: "m" }],
  ];
  for (const [path, body] of wrong) {
    it(`refuse ${path} with ${JSON.stringify(body)}`, async () => {
      await using relay = await openHttpRelay();
      await relay.refused(relay.post(`${MAILBOX}/${path}`, body), "invalid_argument");
    });
  }
});

describe("a full mailbox", () => {
  it("is answered 429 with the time to wait, until something is acknowledged", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_MAILBOX_OPEN_MAX: "2" } });
    const { message_id } = await relay.send();
    await relay.send();
    const message = { from: LULU, to: ZHIWEI, body: "太多" };
    const answer = await relay.post("/messages", message);
    await relay.refused(Promise.resolve(answer), "mailbox_full", /limit/);
    assert.equal(answer.headers["retry-after"], "5");
    await relay.post(`${MAILBOX}/ack`, { message_ids: [message_id] });
    assert.equal((await relay.post("/messages", message)).status, 201);
  });
});
