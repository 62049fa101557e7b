import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS, type MailboxItem, type PushPayload } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { eventually } from "../support/eventually.ts";
import { answers, PushReceiver, signaturesBy, with200 } from "../support/push-receiver.ts";
import { KAMES, openPushingRelay } from "../support/pushing-relay.ts";

describe("a message that is pushed", () => {
  it("arrives at once, signed, as the mailbox shows it, and waits there to be acknowledged", async () => {
    await using receiver = await PushReceiver.open();
    await using relay = await openPushingRelay();
    const secret = await relay.pushTo(receiver.url);
    const { message_id } = await relay.send({ subject: "测试 🦊", body: "知微你好:\n第一行\n“引号”" });
    const [request] = await receiver.arrived(1);
    assert.ok(request);
    assert.equal(signaturesBy(secret, request), 1);
    assert.equal(signaturesBy(`whsec_${Buffer.from("another").toString("base64")}`, request), 0);
    assert.equal(request.path, encodeURI("/收信"));
    assert.equal(request.headers["content-type"], "application/json");
    assert.match(String(request.headers["user-agent"]), /^a2a-relay\/\d/);
    const skewS = Math.abs(Number(request.headers["webhook-timestamp"]) - Date.now() / 1_000);
    assert.ok(skewS < 60, `${skewS} s`);
    const { type, data } = JSON.parse(request.body) as PushPayload & { readonly data: MailboxItem };
    const answer = await relay.until("message.delivered", message_id);
    const [item] = (await relay.get(`/mailbox/${ZHIWEI}?peek=true`)).json.messages;
    assert.equal(type, "message.available");
    assert.deepEqual({ ...data, status: "DELIVERED" }, item);
    assert.equal(data.message.body, "知微你好:\n第一行\n“引号”");
    assert.equal(answer.delivery?.state, "available");
    const [attempt] = answer.push.attempts;
    assert.deepEqual([answer.push.state, attempt?.status, attempt?.answer], ["delivered", 200, "好"]);
    assert.ok(Number(attempt?.duration_ms) < 20_000);
  });

  it("is begun in the order it was accepted, a few at a time", async () => {
    await using receiver = await PushReceiver.open();
    await using relay = await openPushingRelay();
    const messages = Array.from({ length: 120 }, (_, index) => ({
      id: `信${500 - index}`,
      from: LULU,
      to: ZHIWEI,
      body: "你好",
    }));
    const { json } = await relay.post("/messages/batch", { messages });
    assert.ok(json.results.every(({ status }) => status === 201));
    await relay.pushTo(receiver.url);
    await receiver.arrived(messages.length);
    for (const [index, { id }] of messages.entries()) {
      const position = receiver.ids.indexOf(encodeURIComponent(id));
      assert.ok(
        Math.abs(position - index) <= LIMITS.pushesOfEndpointMax,
        `${id} came as ${position}, not ${index}`,
      );
    }
    assert.equal(new Set(receiver.ids).size, messages.length);
  });

  it("comes as a notice where the agent wants no messages, and is acknowledged where it wants that", async () => {
    await using receiver = await PushReceiver.open();
    await using relay = await openPushingRelay();
    await relay.pushTo(receiver.url, { notice: true });
    const first = await relay.send({ subject: "测试", body: "只给知微的秘密" });
    const noticed = await relay.until("message.noticed", first.message_id);
    assert.equal(noticed.delivery?.delivered_at, undefined);
    const [request] = receiver.requests;
    assert.doesNotMatch(request?.body ?? "", /秘密/);
    const { data } = JSON.parse(request?.body ?? "") as { readonly data: Readonly<Record<string, unknown>> };
    assert.deepEqual([data["message_id"], data["subject"]], [first.message_id, "测试"]);
    const { pathname } = new URL(String(data["mailbox_url"]));
    assert.equal((await relay.get(`${pathname}?peek=true`)).json.messages[0]?.message_id, first.message_id);
    await relay.pushTo(receiver.url, { notice: false, push_ack: true });
    const second = await relay.send();
    const settled = await relay.until("message.acknowledged", second.message_id);
    assert.equal(settled.delivery?.state, "acknowledged");
  });

  it("is signed with two secrets while an old one is good", async () => {
    await using receiver = await PushReceiver.open();
    await using relay = await openPushingRelay();
    const old = await relay.pushTo(receiver.url);
    const { status, json } = await relay.post(`/agents/${ZHIWEI}/push/rotate`, {});
    const { push_secret: secret } = json as unknown as { readonly push_secret: string };
    assert.equal(status, 201);
    await relay.send();
    const [request] = await receiver.arrived(1);
    assert.ok(request);
    assert.deepEqual([signaturesBy(secret, request), signaturesBy(old, request)], [1, 1]);
    await relay.post(`/agents/${ZHIWEI}/push/rotate`, { overlap_ms: 0 });
    await relay.send();
    const last = (await receiver.arrived(2)).at(-1);
    assert.equal(String(last?.headers["webhook-signature"]).split(" ").length, 1);
  });

  it("goes to the agent of the same tenant", async () => {
    await using ours = await PushReceiver.open();
    await using theirs = await PushReceiver.open();
    await using relay = await openPushingRelay();
    await relay.post("/keys", { tenant: "工作室" });
    const studio = `/t/${encodeURIComponent("工作室")}`;
    for (const agent of [
      { agent_id: LULU },
      { agent_id: ZHIWEI, callback_url: theirs.url, push: "webhook" },
    ]) {
      await relay.post(`${studio}/agents/register`, { ...agent });
    }
    await relay.pushTo(ours.url);
    const { message_id: own } = await relay.send();
    const message = { from: LULU, to: ZHIWEI, body: "工作室的信" };
    const other = (await relay.post(`${studio}/messages`, message)).json.receipt.message_id;
    await Promise.all([ours.arrived(1), theirs.arrived(1)]);
    assert.deepEqual([ours.ids, theirs.ids], [[own], [other]]);
    assert.equal((await relay.get(`${studio}/agents/${ZHIWEI}/push`)).status, 200);
  });
});

describe("what is pushed no more, and what is pushed again", () => {
  it("is dropped when it was acknowledged between two attempts", async () => {
    await using relay = await openPushingRelay({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0,150" } });
    await using receiver = await PushReceiver.open((response, _number, { id }) => {
      const ack = relay.post(`/mailbox/${ZHIWEI}/ack`, { message_ids: [id] });
      void ack.finally(() => response.writeHead(500).end());
    });
    await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    await receiver.arrived(1);
    const { push } = await eventually(
      () => relay.message(message_id),
      ({ push: { state } }) => state !== "pending",
    );
    assert.deepEqual([push.state, push.reason], ["dropped", "the message is acknowledged"]);
    assert.deepEqual([push.attempts.length, receiver.requests.length], [1, 1]);
  });

  it("is replayed after an outage, all that waits since then", async () => {
    await using receiver = await PushReceiver.open(answers(503));
    await using relay = await openPushingRelay({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0,20" } });
    await relay.pushTo(receiver.url);
    const since = new Date(Date.now() - 60_000).toISOString();
    const ids: string[] = [];
    for (const body of ["第一封", "第二封"]) ids.push((await relay.send({ body })).message_id);
    for (const id of ids) await relay.until("message.push_failed", id);
    receiver.answering = with200;
    const replay = (body: object) => relay.post(`/agents/${ZHIWEI}/push/replay`, body);
    const future = new Date(Date.now() + 60_000).toISOString();
    assert.deepEqual((await replay({ since: future })).json, { agent_id: ZHIWEI, replayed: 0 });
    assert.deepEqual((await replay({ since })).json, { agent_id: ZHIWEI, replayed: 2 });
    for (const id of ids) assert.equal((await relay.until("message.delivered", id)).push.attempts.length, 3);
  });

  it("is nothing of an agent that switched push off, and of one that has left", async () => {
    await using receiver = await PushReceiver.open();
    await using relay = await openPushingRelay();
    await relay.pushTo(receiver.url);
    await relay.post("/agents/register", { agent_id: ZHIWEI, push: null });
    const { message_id } = await relay.send();
    await relay.post("/agents/register", { agent_id: KAMES, callback_url: receiver.url, push: "webhook" });
    const { message_id: first } = await relay.send({ to: KAMES });
    await receiver.arrived(1);
    const kames = `/agents/${encodeURIComponent(KAMES)}`;
    await relay.call("DELETE", kames);
    await relay.post("/agents/register", { agent_id: KAMES });
    await relay.send({ to: KAMES });
    await relay.refused(relay.get(`${kames}/push`), "not_found", /are not pushed/);
    await relay.pushTo(receiver.url);
    await receiver.arrived(2);
    assert.deepEqual(receiver.ids, [first, message_id]);
  });
});
