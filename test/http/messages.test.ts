import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const DRAFT = { from: LULU, to: ZHIWEI, body: "知微你好" };

describe("POST /messages", () => {
  it("answers 201 with the complete message and its receipt", async () => {
    await using relay = await openHttpRelay();
    const { status, json } = await relay.post("/messages", { ...DRAFT, type: "request", subject: "hello" });
    assert.equal(status, 201);
    const { message, receipt } = json;
    assert.deepEqual(
      [
        message.version,
        message.from,
        message.to,
        message.type,
        message.subject,
        message.body,
        message["status"],
      ],
      ["a2a.v1", LULU, ZHIWEI, "request", "hello", "知微你好", "new"],
    );
    assert.match(message.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(receipt, {
      message_id: message.id,
      stage: "accepted",
      recipient: ZHIWEI,
      thread_id: message.thread_id,
      task_id: message.task_id,
    });
  });

  it("shows when a message was written in UTC, whatever the zone of its sender", async () => {
    await using relay = await openHttpRelay();
    for (const type of ["note", "heartbeat"]) {
      const created_at = "2026-05-08T16:30:00+08:00";
      const { json } = await relay.post("/messages", { ...DRAFT, type, created_at });
      assert.equal(json.message.created_at, "2026-05-08T08:30:00.000Z", type);
    }
    const { messages } = (await relay.get(`/mailbox/${ZHIWEI}`)).json;
    assert.deepEqual(
      messages.map(({ message }) => message.created_at),
      ["2026-05-08T08:30:00.000Z"],
    );
  });

  it("answers 200 with the same receipt to the same key and content, 409 to other content", async () => {
    await using relay = await openHttpRelay();
    const first = await relay.post("/messages", { ...DRAFT, idempotency_key: "k1" });
    const second = await relay.post("/messages", { ...DRAFT, idempotency_key: "k1" });
    assert.deepEqual([first.status, second.status], [201, 200]);
    assert.deepEqual(second.json, first.json);
    const other = relay.post("/messages", { ...DRAFT, body: "别的", idempotency_key: "k1" });
    await relay.refused(other, "conflict", /"k1"/);
  });

  it("refuses what it cannot deliver, and nothing is half-done", async () => {
    await using relay = await openHttpRelay();
    const send = (more: object) => relay.post("/messages", { ...DRAFT, ...more });
    await relay.refused(send({ to: "missing" }), "unknown_agent", /GET \/agents/);
    await relay.refused(send({ to: LULU }), "invalid_argument", /itself/);
    await relay.refused(send({ type: "shout" }), "invalid_argument", /one of note, request/);
    await relay.refused(send({ attachments: ["a"] }), "invalid_argument", /^attachments: /);
    await relay.refused(send({ expires_at: "2026-02-30T00:00:00Z" }), "invalid_argument", /^expires_at: /);
    await relay.refused(send({ created_at: "1969-12-31T23:59:59Z" }), "invalid_argument", /1970/);
    await relay.refused(send({ reply_to: "nothing", type: "reply" }), "not_found", /^reply_to: /);
    await relay.refused(send({ subject: "x".repeat(501) }), "too_large", /500 characters/);
    await relay.refused(relay.post("/messages", { to: ZHIWEI, body: "x" }), "invalid_argument", /^from: /);
    const { json } = await relay.get("/events?type=message.accepted");
    assert.deepEqual(json.events, []);
  });

  it("refuses a name that two agents have", async () => {
    await using relay = await openHttpRelay();
    for (const agent_id of ["kames@kamac", "kames@blocks"]) {
      await relay.post("/agents/register", { agent_id, display_name: "kames" });
    }
    const error = await relay.refused(relay.post("/messages", { ...DRAFT, to: "kames" }), "ambiguous_agent");
    assert.deepEqual(
      new Set(error.details?.["candidates"] as string[]),
      new Set(["kames@kamac", "kames@blocks"]),
    );
  });
});

describe("GET /messages/{id}", () => {
  it("shows message, delivery and all receipts", async () => {
    await using relay = await openHttpRelay();
    const { message_id, task_id } = await relay.send({ type: "request" });
    await relay.get(`/mailbox/${ZHIWEI}`);
    await relay.post(`/tasks/${task_id}/status`, { state: "working" });
    await relay.post(`/tasks/${task_id}/complete`, { text: "好了" });
    const { status, json } = await relay.get(`/messages/${message_id}`);
    assert.equal(status, 200);
    assert.deepEqual(
      [json.message.id, json.task_id, json.delivery.state],
      [message_id, task_id, "acknowledged"],
    );
    assert.deepEqual(
      json.receipts.map(({ stage }) => stage),
      ["accepted", "delivered", "working", "acknowledged", "replied"],
    );
    for (const { at, by } of json.receipts) assert.ok(at.endsWith("Z") && by.includes("@"));
  });

  it("answers 404 for an unknown message", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get("/messages/nothing"), "not_found");
    await relay.refused(relay.get("/messages/a%2Fb"), "invalid_argument");
  });
});

describe("POST /messages/batch", () => {
  it("answers each message in order, each with its own status", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ idempotency_key: "k1" });
    const { status, json } = await relay.post("/messages/batch", {
      messages: [
        { ...DRAFT, body: "一" },
        { ...DRAFT, to: "missing" },
        { ...DRAFT, idempotency_key: "k1" },
        { ...DRAFT, idempotency_key: "k1", body: "别的" },
        { ...DRAFT, type: 7 },
        { ...DRAFT, body: "二" },
      ],
    });
    assert.equal(status, 200);
    assert.deepEqual(
      json.results.map((item) => [item.status, item.error?.code]),
      [
        [201, undefined],
        [404, "unknown_agent"],
        [200, undefined],
        [409, "conflict"],
        [400, "invalid_argument"],
        [201, undefined],
      ],
    );
    const mailbox = await relay.get(`/mailbox/${ZHIWEI}?peek=true`);
    assert.deepEqual(
      mailbox.json.messages.map(({ message }) => message.body),
      ["知微你好", "一", "二"],
    );
  });

  it("with atomic is all or none, and names the message that was wrong", async () => {
    await using relay = await openHttpRelay();
    const messages = [DRAFT, { ...DRAFT, to: "missing" }];
    const refusal = relay.post("/messages/batch", { messages, atomic: true });
    const error = await relay.refused(refusal, "unknown_agent", /^messages\[1\]: .*nothing was sent/);
    assert.equal(error.details?.["index"], 1);
    assert.deepEqual((await relay.get(`/mailbox/${ZHIWEI}`)).json.messages, []);
    const { status, json } = await relay.post("/messages/batch", {
      messages: [DRAFT, DRAFT],
      atomic: true,
    });
    assert.deepEqual([status, json.results.length], [200, 2]);
  });

  it("takes as many messages as its limit says, and not one more", async () => {
    await using relay = await openHttpRelay();
    const messages = Array.from({ length: LIMITS.batchMessagesMax }, () => DRAFT);
    assert.equal((await relay.post("/messages/batch", { messages })).json.results.length, 500);
    const more = { messages: [...messages, DRAFT] };
    await relay.refused(relay.post("/messages/batch", more), "too_large", /500 items/);
    assert.equal((await relay.get("/queue?limit=1")).json.totals["available"], 500);
  });

  it("takes more than one message's worth of bytes", async () => {
    await using relay = await openHttpRelay();
    const big = { ...DRAFT, body: "x".repeat(900_000) };
    const { status, json } = await relay.post("/messages/batch", { messages: [big, big, big] });
    assert.deepEqual([status, json.results.length], [200, 3]);
    const tooBig = { ...DRAFT, body: "x".repeat(LIMITS.bodyBytesMax + LIMITS.messageBytesAdded) };
    const answer = await relay.post("/messages/batch", { messages: [DRAFT, tooBig] });
    assert.deepEqual(
      answer.json.results.map(({ status: each }) => each),
      [201, 413],
    );
  });

  it("refuses what is no batch", async () => {
    await using relay = await openHttpRelay();
    for (const body of [
      {},
      { messages: [] },
      { messages: DRAFT },
      [DRAFT],
      { messages: [DRAFT], atomic: "yes" },
    ]) {
      await relay.refused(relay.post("/messages/batch", body), "invalid_argument");
    }
  });
});
