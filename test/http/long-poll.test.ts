import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type HttpRelay, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const MAILBOX = `/mailbox/${ZHIWEI}`;

/** Ends when the relay has taken in what was sent before: requests sent later have been answered. */
async function settled(relay: HttpRelay): Promise<void> {
  await relay.get("/health");
  await relay.get("/health");
}

describe("a long poll", () => {
  it("is answered the moment a message comes", async () => {
    await using relay = await openHttpRelay();
    const waiting = relay.get(`${MAILBOX}?wait_ms=60000`);
    await settled(relay);
    const { message_id } = await relay.send();
    const { status, json } = await waiting;
    assert.deepEqual([status, json.messages.map((item) => item.message_id)], [200, [message_id]]);
  });

  it("for a lease, and for events, too", async () => {
    await using relay = await openHttpRelay();
    const lease = relay.post(`${MAILBOX}/lease`, { wait_ms: 60_000, worker: "w1" });
    const events = relay.get("/events?since=4&wait_ms=60000");
    await settled(relay);
    const { message_id } = await relay.send();
    assert.equal((await lease).json.messages[0]?.message_id, message_id);
    assert.equal((await events).json.events[0]?.type, "message.accepted");
  });

  it("is answered at once when a message is open", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    assert.equal((await relay.get(`${MAILBOX}?wait_ms=60000`)).json.messages.length, 1);
  });

  it("ends empty when its time is over, with its cursor", async () => {
    await using relay = await openHttpRelay();
    const startedAt = performance.now();
    const { status, json } = await relay.get(`${MAILBOX}?wait_ms=150&since=7`);
    assert.deepEqual([status, json.messages, json.cursor], [200, [], "7"]);
    assert.ok(performance.now() - startedAt >= 140);
  });

  it("of a client that went away takes no lease and leaves no mark", async () => {
    await using relay = await openHttpRelay();
    for (const request of [
      `POST ${MAILBOX}/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{"wait_ms":60000}`,
      `GET ${MAILBOX}?wait_ms=60000 HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    ]) {
      const socket = connect({ host: "127.0.0.1", port: relay.port });
      await once(socket, "connect");
      socket.write(request);
      await settled(relay);
      socket.destroy();
      await once(socket, "close");
    }
    await settled(relay);
    // A lease that was under way when its client left is committed before this one.
    await relay.post(`${MAILBOX}/lease`, {});
    const { message_id } = await relay.send();
    await settled(relay);
    const { delivery } = (await relay.get(`/messages/${message_id}`)).json;
    assert.deepEqual([delivery.state, delivery.attempt, delivery.delivered_at], ["available", 0, undefined]);
  });

  it("is answered when the relay stops, and the relay does not wait for it", async () => {
    const relay = await openHttpRelay();
    const waiting = [
      relay.get(`${MAILBOX}?wait_ms=60000`),
      relay.post(`${MAILBOX}/lease`, { wait_ms: 60_000 }),
      relay.get("/events?since=4&wait_ms=60000"),
    ];
    await settled(relay);
    const stopping = relay[Symbol.asyncDispose]();
    const answers = await Promise.all(waiting);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    const late = await Promise.race([stopping, pause(5_000, "too late", { ref: false })]);
    assert.notEqual(late, "too late");
  });

  for (const path of [
    `${MAILBOX}?wait_ms=60000`,
    `${MAILBOX}/stream`,
    "/events?wait_ms=60000&since=latest",
  ]) {
    it(`of ${path} behind another request on the same connection is refused`, async () => {
      await using relay = await openHttpRelay();
      const [first, behind] = [`${MAILBOX}?wait_ms=100`, `${MAILBOX}?peek=true`].map(
        (each) => `GET ${each} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      );
      const last = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
      const said = await relay.bytes(`${first}${behind}${last}`);
      assert.deepEqual(said.match(/HTTP\/1.1 \d+/g), ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 400"]);
      assert.match(said, /use a connection of its own/);
    });
  }

  it("may wait beside many others", async () => {
    await using relay = await openHttpRelay();
    const waiting = Array.from({ length: 200 }, () => relay.get(`${MAILBOX}?wait_ms=60000&peek=true`));
    await settled(relay);
    await relay.send();
    const answers = await Promise.all(waiting);
    assert.ok(answers.every(({ json }) => json.messages.length === 1));
  });
});
