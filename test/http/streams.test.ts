import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type EventView, HEARTBEAT_HEADER, type MailboxItem, type TaskEventView } from "@a2a-relay/protocol";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { EventReader } from "../support/event-reader.ts";

const STREAM = `/mailbox/${ZHIWEI}/stream`;
const OPERATOR_KEY = "the-operators-own-key-0123456789";
const TIMEOUT = { timeout: 60_000 };

type Headers = Readonly<Record<string, string>>;

function inboxOf(relay: HttpRelay, query = "", headers: Headers = {}): Promise<EventReader<MailboxItem>> {
  return EventReader.open(`${relay.url}${STREAM}${query}`, headers);
}

async function isDelivered(relay: HttpRelay, messageId: string): Promise<boolean> {
  return (await relay.get(`/messages/${messageId}`)).json.delivery.delivered_at !== undefined;
}

describe("the stream of a mailbox", TIMEOUT, () => {
  it("starts with all open messages and sends a new one at once", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ body: "一" });
    await using inbox = await inboxOf(relay);
    assert.equal((await inbox.event()).data.message.body, "一");
    const sent = relay.send({ body: "二" });
    const { id, event, data } = await inbox.event();
    assert.deepEqual([event, data.message.body, data.message_id], ["message", "二", (await sent).message_id]);
    assert.equal(id, (await relay.get(`/mailbox/${ZHIWEI}?peek=true`)).json.cursor);
  });

  it("is not cached, and says when to reconnect", async () => {
    await using relay = await openHttpRelay();
    const readers = await Promise.all(Array.from({ length: 20 }, () => inboxOf(relay)));
    for (const inbox of readers) await inbox.next();
    const [first] = readers;
    assert.equal(first?.response.headers.get("cache-control"), "no-cache, no-transform");
    assert.equal(first?.response.headers.get("x-accel-buffering"), "no");
    assert.equal(first?.response.headers.get(HEARTBEAT_HEADER), "15000");
    const retries = readers.map(({ retryMs }) => retryMs ?? 0);
    assert.ok(retries.every((ms) => ms >= 500 && ms <= 2_500));
    assert.ok(new Set(retries).size > 1, "all come back at the same moment");
    for (const inbox of readers) await inbox[Symbol.asyncDispose]();
  });

  it("sends heartbeats that are no events", async () => {
    await using relay = await openHttpRelay({ flags: { "heartbeat-ms": "20" } });
    await using inbox = await inboxOf(relay);
    for (let beat = 0; beat < 3; beat += 1) assert.equal(await inbox.next(), "heartbeat");
    await relay.send();
    assert.equal((await inbox.event()).id, "1");
  });

  it("marks what was sent as delivered, unless it was only peeked at", async () => {
    await using relay = await openHttpRelay({ flags: { "heartbeat-ms": "20" } });
    const { message_id } = await relay.send();
    await using peeking = await inboxOf(relay, "?peek=true");
    await peeking.event();
    assert.equal(await peeking.next(), "heartbeat");
    assert.equal(await isDelivered(relay, message_id), false);
    await using inbox = await inboxOf(relay);
    await inbox.event();
    // A heartbeat follows once the page before it was marked.
    assert.equal(await inbox.next(), "heartbeat");
    assert.equal(await isDelivered(relay, message_id), true);
  });

  it("brings notices instead of messages where that is asked for", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ subject: "看看", body: "秘密" });
    await using inbox = await inboxOf(relay, "?notice=true");
    const { event, data } = await inbox.event();
    assert.deepEqual([event, (data as { subject?: string }).subject], ["notice", "看看"]);
    assert.doesNotMatch(JSON.stringify(data), /秘密/);
  });

  it("goes on behind Last-Event-ID, which wins over since", async () => {
    await using relay = await openHttpRelay();
    for (const body of ["一", "二", "三"]) await relay.send({ body });
    await using since = await inboxOf(relay, "?since=1");
    assert.equal((await since.event()).data.message.body, "二");
    await using both = await inboxOf(relay, "?since=1", { "last-event-id": "2" });
    assert.equal((await both.event()).data.message.body, "三");
  });

  it("is refused like any other call before it begins", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get(`${STREAM}?since=x`), "invalid_argument", /is not a cursor/);
    const headers = { "last-event-id": "1, 2" };
    await relay.refused(relay.get(STREAM, { headers }), "invalid_argument", /is not a cursor/);
    await relay.refused(relay.get(`${STREAM}?color=red`), "invalid_argument", /unknown field/);
    await relay.refused(relay.get("/mailbox/missing/stream"), "unknown_agent");
    const foreign = { headers: { origin: "https://evil.example" } };
    await relay.refused(relay.get(STREAM, foreign), "permission_denied");
    const image = { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" } };
    await relay.refused(relay.get(STREAM, image), "permission_denied");
  });

  it("is opened by GET only, and a HEAD marks nothing", async () => {
    await using relay = await openHttpRelay();
    const { message_id } = await relay.send();
    assert.equal((await relay.call("HEAD", STREAM)).status, 404);
    assert.equal(await isDelivered(relay, message_id), false);
  });

  it("may be asked for by pages of allowed origins, with the header to go on", async () => {
    const origin = "https://app.example";
    await using relay = await openHttpRelay({ env: { A2A_RELAY_ALLOWED_ORIGINS: origin } });
    const preflight = await relay.call("OPTIONS", STREAM, undefined, { headers: { origin } });
    assert.match(preflight.headers["access-control-allow-headers"] ?? "", /last-event-id/);
    const { headers } = await relay.get(STREAM, { headers: { origin } });
    assert.equal(headers["access-control-allow-origin"], origin);
    assert.equal(headers["access-control-expose-headers"], `${HEARTBEAT_HEADER}, a2a-extensions`);
  });

  it("keeps tenants apart", async () => {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    await using relay = await openHttpRelay({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY }, headers });
    await relay.post("/keys", { tenant: "acme" });
    await relay.post("/t/acme/agents/register", { agent_id: ZHIWEI });
    await relay.post("/t/acme/agents/register", { agent_id: LULU });
    await using other = await EventReader.open<MailboxItem>(`${relay.url}/t/acme${STREAM}`, headers);
    assert.equal(await other.next(), "heartbeat");
    await relay.send({ body: "秘密" });
    await relay.post("/t/acme/messages", { from: LULU, to: ZHIWEI, body: "他们的" });
    assert.equal((await other.event()).data.message.body, "他们的");
  });

  it("ends once its key has ended, and its reader is then told why", async () => {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    await using relay = await openHttpRelay({
      env: { A2A_RELAY_API_KEY: OPERATOR_KEY, A2A_RELAY_HEARTBEAT_MS: "50" },
      headers,
    });
    const { key, key_id } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
    const own = { authorization: `Bearer ${key}` };
    await using inbox = await inboxOf(relay, "", own);
    assert.equal(await inbox.next(), "heartbeat");
    await relay.post(`/keys/${key_id}/revoke`);
    await relay.send({ body: "不再是他的" });
    assert.deepEqual(await inbox.rest(), []);
    await relay.refused(relay.get(STREAM, { headers: own }), "unauthenticated");
  });

  it("ends at once, as a whole answer, when the relay stops", async () => {
    const relay = await openHttpRelay();
    const readers = await Promise.all(Array.from({ length: 50 }, () => inboxOf(relay)));
    for (const inbox of readers) await inbox.next();
    const stopping = relay[Symbol.asyncDispose]();
    // A connection that breaks would throw.
    for (const inbox of readers) assert.equal(await inbox.next(), undefined);
    const late = await Promise.race([stopping, pause(5_000, "too late", { ref: false })]);
    assert.notEqual(late, "too late");
  });

  it("is counted while it is open", async () => {
    await using relay = await openHttpRelay({ flags: { "heartbeat-ms": "20" } });
    const open = async (): Promise<string | undefined> =>
      /^a2a_relay_open_streams\{kind="mailbox"\} (\d+)$/m.exec((await relay.get("/metrics")).text)?.[1];
    const inbox = await inboxOf(relay);
    await inbox.next();
    assert.equal(await open(), "1");
    await inbox[Symbol.asyncDispose]();
    while ((await open()) !== "0") continue;
  });
});

describe("the stream of a task", TIMEOUT, () => {
  const eventsOf = (
    relay: HttpRelay,
    id: string,
    headers: Headers = {},
  ): Promise<EventReader<TaskEventView>> => EventReader.open(`${relay.url}/tasks/${id}/events`, headers);

  it("sends the events and ends with the task; a reader that comes back is told to stop", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    await using events = await eventsOf(relay, task_id);
    assert.equal((await events.event()).data.type, "message.accepted");
    await relay.post(`/tasks/${task_id}/status`, { state: "working" });
    assert.equal((await events.event()).data.type, "task.working");
    await relay.post(`/tasks/${task_id}/complete`, { text: "好了" });
    const rest = await events.rest();
    assert.equal(rest.at(-1)?.data.type, "task.completed");
    const headers = { accept: "text/event-stream", "last-event-id": rest.at(-1)?.id ?? "" };
    const { status, text } = await relay.get(`/tasks/${task_id}/events`, { headers });
    assert.deepEqual([status, text], [204, ""]);
  });

  it("ends for the agent that hands the task on with that event, and tells it to stop", async () => {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    await using relay = await openHttpRelay({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY }, headers });
    await relay.post("/agents/register", { agent_id: "kames" });
    const { key } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
    const own = { authorization: `Bearer ${key}` };
    const { task_id } = await relay.send({ type: "request" });
    await using events = await eventsOf(relay, task_id, own);
    await events.event();
    const handoff = { from: ZHIWEI, to: "kames", type: "handoff", task_id, body: "你来" };
    assert.equal((await relay.post("/messages", handoff, { headers: own })).status, 201);
    const last = (await events.rest()).at(-1);
    assert.equal(last?.data.type, "task.handed_off");
    const again = { ...own, accept: "text/event-stream", "last-event-id": last?.id ?? "" };
    assert.equal((await relay.get(`/tasks/${task_id}/events`, { headers: again })).status, 204);
  });

  it("goes on from every event of a finished task", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    await relay.post(`/tasks/${task_id}/status`, { state: "working" });
    await relay.post(`/tasks/${task_id}/complete`, {});
    await using all = await eventsOf(relay, task_id);
    const ids = (await all.rest()).map(({ id }) => id);
    assert.ok(ids.length >= 3);
    for (const [index, id] of ids.slice(0, -1).entries()) {
      await using cut = await eventsOf(relay, task_id, { "last-event-id": id });
      assert.deepEqual(
        (await cut.rest()).map((event) => event.id),
        ids.slice(index + 1),
      );
    }
  });

  it("is a list for a caller that does not ask for a stream", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    const { json, headers } = await relay.get(`/tasks/${task_id}/events`);
    assert.equal(headers["vary"], "accept");
    assert.deepEqual(
      json.events.map(({ type }) => type),
      ["message.accepted"],
    );
    await relay.post(`/tasks/${task_id}/cancel`);
    const { json: more } = await relay.get(`/tasks/${task_id}/events?since=${json.cursor}`);
    assert.equal(more.events.at(-1)?.type, "task.canceled");
    const { json: last } = await relay.get(`/tasks/${task_id}/events?since=${more.cursor}`);
    assert.deepEqual([last.events, last.cursor], [[], more.cursor]);
  });
});

describe("the stream of events", TIMEOUT, () => {
  const follow = (relay: HttpRelay, query = "", headers: Headers = {}): Promise<EventReader<EventView>> =>
    EventReader.open(`${relay.url}/events${query}`, headers);

  it("sends what the list holds, then new events", async () => {
    await using relay = await openHttpRelay();
    const listed = (await relay.get("/events")).json.events;
    await using events = await follow(relay);
    const told = await events.take(listed.length);
    assert.deepEqual(
      told.map(({ data }) => data),
      listed,
    );
    await relay.send();
    const { id, event, data } = await events.event();
    assert.deepEqual([event, data.type, id], ["event", "message.accepted", String(data.seq)]);
  });

  it("can be cut at every event: the two parts are the whole", async () => {
    await using relay = await openHttpRelay();
    for (const body of ["一", "二", "三"]) await relay.send({ body });
    const seqs = (await relay.get("/events")).json.events.map(({ seq }) => String(seq));
    for (let index = 1; index < seqs.length; index += 1) {
      await using before = await follow(relay);
      const head = (await before.take(index)).map(({ id }) => id);
      await before[Symbol.asyncDispose]();
      await using after = await follow(relay, "", { "last-event-id": head.at(-1) ?? "" });
      const tail = (await after.take(seqs.length - index)).map(({ id }) => id);
      assert.deepEqual([...head, ...tail], seqs);
    }
  });

  it("takes the same filters, and starts at the end where that is asked for", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ thread_id: "甲" });
    await using events = await follow(relay, `?since=latest&agent=zhiwei&type=message.accepted`);
    assert.equal(await events.next(), "heartbeat");
    await relay.post("/agents/register", { agent_id: "kames" });
    await relay.send({ thread_id: "乙" });
    assert.equal((await events.event()).data.thread_id, "乙");
  });

  it("is refused to agents, and with a filter that can never match", async () => {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}`, accept: "text/event-stream" };
    await using relay = await openHttpRelay({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY }, headers });
    const { key } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
    const own = { ...headers, authorization: `Bearer ${key}` };
    await relay.refused(relay.get("/events", { headers: own }), "permission_denied");
    await relay.refused(relay.get("/events?type=no.such"), "invalid_argument");
  });
});
