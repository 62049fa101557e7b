import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { describe, it } from "node:test";
import type { EventsResponse, MailboxResponse, MessageResponse, SendResponse } from "@a2a-relay/protocol";
import { ask, type Reply } from "../support/ask.ts";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { HttpConnection } from "../support/http-connection.ts";
import {
  ADA,
  assertKept,
  assertVerifies,
  BOB,
  lease,
  type CreatedMessage,
  createMessage,
  createdFrom,
  readAll,
  registerBoth,
} from "./messages.ts";

/** The promise of the relay, from SIGTERM to its end. */
const STOP_MS_MAX = 10_000;
/** How long it waits for requests under way. */
const DRAIN_MS = 8_000;

describe("a relay that is asked to stop", { timeout: 60_000 }, () => {
  it("answers a long poll at once and exits with 0", async () => {
    await using relay = await startChildRelay();
    await registerBoth(relay.url);
    const { body } = await ask<EventsResponse>(relay.url, "GET", "/events?limit=500");
    const waiting = [
      await begin(relay, "GET", `/mailbox/${BOB}?wait_ms=60000`),
      await begin(relay, "POST", `/mailbox/${ADA}/lease`, JSON.stringify({ wait_ms: 60_000 })),
      await begin(relay, "GET", `/events?since=${body.cursor}&wait_ms=60000`),
    ];
    await assertStops(relay);
    const [read, leased, events] = await Promise.all(waiting.map((call) => call.answer));
    assert.deepEqual(read?.body, { messages: [], cursor: "0" });
    assert.deepEqual(leased?.body, { messages: [] });
    assert.deepEqual(events?.body, { events: [], cursor: body.cursor, has_more: false });
  });

  it("finishes a request that is under way", async () => {
    await using relay = await startChildRelay();
    await registerBoth(relay.url);
    const body = "the end of it came after the signal";
    const content = JSON.stringify({ from: ADA, to: BOB, body });
    const call = await begin(relay, "POST", "/messages", content.slice(0, 20), content.length);
    const stopped = relay.kill("SIGTERM");
    await relay.said(/stopping/);
    call.outgoing.end(content.slice(20));
    const reply = await call.answer;
    assert.equal(reply.status, 201);
    assert.deepEqual(await stopped, { code: 0, signal: null });
    await using next = await startChildRelay({ dataDirectory: relay.dataDirectory });
    await assertKept(next.url, [createdFrom(reply as Reply<SendResponse>, body)]);
  });

  it("resumes its state: leases, cursors and keys hold", async () => {
    await using relay = await startChildRelay();
    await registerBoth(relay.url);
    const work = { type: "request", idempotency_key: "one" };
    const message = await createMessage(relay.url, "leased before the stop", work);
    const [held] = await lease(relay.url, { max: 1 });
    await createMessage(relay.url, "read before the stop");
    const read = await ask<MailboxResponse>(relay.url, "GET", `/mailbox/${BOB}`);
    await assertStops(relay);

    await using next = await startChildRelay({ dataDirectory: relay.dataDirectory });
    const again = await ask<SendResponse>(next.url, "POST", "/messages", {
      from: ADA,
      to: BOB,
      body: "leased before the stop",
      ...work,
    });
    assert.equal(again.status, 200);
    assert.equal(again.body.receipt.message_id, message.messageId);
    const { body } = await ask<MessageResponse>(next.url, "GET", `/messages/${message.messageId}`);
    assert.equal(body.delivery?.state, "leased");
    assert.equal(body.delivery?.lease?.id, held?.lease.id);
    const fresh = await createMessage(next.url, "sent after the stop");
    const since = await ask<MailboxResponse>(next.url, "GET", `/mailbox/${BOB}?since=${read.body.cursor}`);
    assert.deepEqual(
      since.body.messages.map((item) => item.message_id),
      [fresh.messageId],
    );
    const completed = await ask(next.url, "POST", `/tasks/${message.taskId}/complete`, {
      text: "done after the stop",
      lease_id: held?.lease.id,
    });
    assert.equal(completed.status, 200);
    await assertVerifies(next.url);
  });

  it("loses no send that it answered under load", async () => {
    await using relay = await startChildRelay();
    await registerBoth(relay.url);
    using connection = new HttpConnection(relay.url);
    const answered: CreatedMessage[] = [];
    const clients = Array.from({ length: 16 }, async (_, client) => {
      for (let count = 0; !connection.broken; count += 1) {
        const body = `message ${count} of client ${client}, 知微你好`;
        const reply = await connection.call("POST", "/messages", { from: ADA, to: BOB, body });
        if (reply?.status !== 201) break;
        const { receipt } = reply.body as SendResponse;
        answered.push({ messageId: receipt.message_id, taskId: undefined, body });
        if (answered.length === 300) process.kill(relay.pid, "SIGTERM");
      }
    });
    await Promise.all(clients);
    // The connections stay open: idle connections do not delay the stop.
    const quietAtMs = performance.now();
    assert.deepEqual(await relay.exited, { code: 0, signal: null });
    assert.ok(performance.now() - quietAtMs < DRAIN_MS);
    assert.ok(answered.length >= 300);

    await using next = await startChildRelay({ dataDirectory: relay.dataDirectory });
    await assertKept(next.url, answered);
    await assertVerifies(next.url);
    assert.equal((await readAll(next.url)).length, Math.min(500, (await accepted(next.url)).length));
  });

  it("stops at once when asked twice, and loses nothing", async () => {
    await using relay = await startChildRelay();
    await registerBoth(relay.url);
    const message = await createMessage(relay.url, "before an impatient stop");
    const call = await begin(relay, "POST", "/messages", "{", 1_000);
    const stopped = relay.kill("SIGTERM");
    await relay.said(/stopping/);
    await relay.kill("SIGTERM");
    await stopped;
    await assert.rejects(call.answer);
    await using next = await startChildRelay({ dataDirectory: relay.dataDirectory });
    await assertKept(next.url, [message]);
  });
});

async function assertStops(relay: ChildRelay): Promise<void> {
  const startedAtMs = performance.now();
  assert.deepEqual(await relay.kill("SIGTERM"), { code: 0, signal: null }, relay.stderr());
  assert.ok(performance.now() - startedAtMs < STOP_MS_MAX);
}

/** A call that the relay has begun to handle, with as much of its content as is given. */
async function begin(
  relay: ChildRelay,
  method: "GET" | "POST",
  path: string,
  content = "",
  length = content.length,
): Promise<{ readonly outgoing: ClientRequest; readonly answer: Promise<Reply<unknown>> }> {
  const outgoing = request(`${relay.url}${path}`, {
    method,
    agent: false,
    headers: { "content-type": "application/json", "content-length": length, expect: "100-continue" },
  });
  const answer = once(outgoing, "response").then(async ([incoming]: IncomingMessage[]) => ({
    status: incoming?.statusCode ?? 0,
    body: await json(incoming ?? Readable.from([])),
  }));
  answer.catch(() => undefined);
  outgoing.flushHeaders();
  await once(outgoing, "continue");
  if (content.length === length) outgoing.end(content);
  else outgoing.write(content);
  return { outgoing, answer };
}

async function accepted(url: string): Promise<EventsResponse["events"]> {
  const found: EventsResponse["events"][number][] = [];
  for (let since = "0", more = true; more;) {
    const { body } = await ask<EventsResponse>(
      url,
      "GET",
      `/events?type=message.accepted&limit=500&since=${since}`,
    );
    found.push(...body.events);
    since = body.cursor;
    more = body.has_more;
  }
  return found;
}
