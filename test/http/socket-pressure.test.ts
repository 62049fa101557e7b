import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { LIMITS, SOCKET_CLOSE } from "@a2a-relay/protocol";
import { activeTimers } from "../../packages/relay/testing/active-timers.ts";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { SocketClient } from "../support/socket-client.ts";

const PATH = `/mailbox/${ZHIWEI}/ws`;
const TIMEOUT = { timeout: 60_000 };
/** More than the operating system takes for a reader that does not read: about 4 MB on Linux. */
const LONG = "长".repeat(300_000);
/** Those that serve all sockets at once, and some of the relay's own that may begin meanwhile. */
const IDLE_TIMERS_MAX = 10;

async function metric(relay: HttpRelay, name: string): Promise<number> {
  const { text } = await relay.get("/metrics");
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.split(" ")[1],
  );
}

/** Ends when the relay has taken in what was sent before: requests sent later have been answered. */
async function settled(relay: HttpRelay): Promise<void> {
  await relay.get("/health");
  await relay.get("/health");
}

async function acceptedIn(relay: HttpRelay): Promise<number> {
  const { json } = await relay.get("/events?type=message.accepted&limit=500");
  return json.events.length;
}

/** A short frame of a client, masked with zeros. */
function frameOf(opcode: number, payload: string): Buffer {
  const head = Buffer.from([opcode, 0x80 + payload.length, 0, 0, 0, 0]);
  return Buffer.concat([head, Buffer.from(payload, "latin1")]);
}

/** A quiet socket whose frames are written by hand. */
async function openRaw(relay: HttpRelay): Promise<Socket> {
  const handshake = [
    `GET ${PATH}?quiet=true HTTP/1.1`,
    "Host: localhost",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "\r\n",
  ];
  const raw = connect({ host: "127.0.0.1", port: relay.port });
  raw.write(handshake.join("\r\n"));
  assert.match(String((await once(raw, "data"))[0]), /^HTTP\/1.1 101 /);
  return raw;
}

describe("a socket whose other side does not read", TIMEOUT, () => {
  it("is closed with the cursor to go on from, while others get their messages", async () => {
    await using relay = await openHttpRelay({ flags: { "stream-stall-ms": "300" } });
    await using slow = await SocketClient.open(relay.url, `${PATH}?peek=true`);
    await using other = await SocketClient.open(relay.url, `/mailbox/${LULU}/ws`);
    slow.ws.pause();
    for (let count = 0; count < 8; count += 1) await relay.send({ body: LONG });
    for (let count = 0; count < 5; count += 1) {
      await relay.send({ from: ZHIWEI, to: LULU, body: `${count}` });
      assert.equal((await other.messages(1))[0]?.message.body, `${count}`);
    }
    while ((await metric(relay, 'a2a_relay_slow_readers_total{kind="socket"}')) === 0) continue;
    slow.ws.resume();
    const { code, reason } = await slow.closed;
    assert.equal(code, SOCKET_CLOSE.slow);
    const cursors: string[] = [];
    for (let seen = 0; seen < Number(reason); seen += 1) cursors.push((await slow.next()).cursor ?? "");
    assert.equal(cursors.at(-1), reason);
    await using again = await SocketClient.open(relay.url, `${PATH}?peek=true&since=${reason}`);
    assert.equal((await again.messages(8 - cursors.length)).length, 8 - cursors.length);
  });

  it("is cut off when not even the goodbye gets through", async () => {
    await using relay = await openHttpRelay({ flags: { "stream-stall-ms": "100" } });
    await using slow = await SocketClient.open(relay.url, PATH);
    slow.ws.pause();
    for (let count = 0; count < 8; count += 1) await relay.send({ body: LONG });
    while ((await metric(relay, 'a2a_relay_open_streams{kind="socket"}')) > 0) continue;
    assert.equal(await metric(relay, 'a2a_relay_slow_readers_total{kind="socket"}'), 1);
  });

  it("is asked nothing more, and goes on where it was once it reads", async () => {
    await using relay = await openHttpRelay();
    await using socket = await SocketClient.open(relay.url, `${PATH}?quiet=true`);
    socket.ws.pause();
    const message = { from: LULU, to: ZHIWEI, body: LONG };
    const count = 60;
    const answers = Array.from({ length: count }, () => socket.ask("send", message));
    let accepted = -1;
    for (let last = -2; last !== accepted;) {
      last = accepted;
      for (let poll = 0; poll < 10; poll += 1) await settled(relay);
      accepted = await acceptedIn(relay);
    }
    assert.ok(accepted < count / 2, `${accepted} were accepted though no client took the answers`);
    socket.ws.resume();
    assert.equal((await Promise.all(answers)).length, count);
    assert.equal(await acceptedIn(relay), count);
  });
});

describe("100 idle sockets", TIMEOUT, () => {
  it("hold no timer each, however often they are pinged", async () => {
    // Pings come more often than the stall time, so a timer for each would never end.
    await using relay = await openHttpRelay({ flags: { "heartbeat-ms": "100" } });
    await using sockets = new AsyncDisposableStack();
    await relay.get("/health");
    const before = activeTimers();
    const pinged: Promise<unknown>[] = [];
    for (let count = 0; count < 100; count += 1) {
      const socket = sockets.use(await SocketClient.open(relay.url, PATH));
      pinged.push(once(socket.ws, "ping"));
    }
    await Promise.all(pinged);
    await settled(relay);
    const held = activeTimers() - before;
    assert.ok(held <= IDLE_TIMERS_MAX, `${held} timers for 100 idle sockets`);
  });
});

describe("leases of a socket whose other side does not read", TIMEOUT, () => {
  const MESSAGES = 40;

  async function leasedIn(relay: HttpRelay): Promise<number> {
    return (await relay.get("/queue?limit=1")).json.totals["leased"] ?? 0;
  }

  it("are held back, however many come in one piece", async () => {
    await using relay = await openHttpRelay();
    for (let count = 0; count < MESSAGES; count += 1) await relay.send({ body: LONG });
    const raw = await openRaw(relay);
    raw.pause();
    const lease = JSON.stringify({ id: "1", verb: "lease", input: { max: 100 } });
    raw.write(Buffer.concat(Array.from({ length: LIMITS.socketRequestsMax }, () => frameOf(0x81, lease))));
    let taken = -1;
    for (let last = -2; last !== taken || taken === 0;) {
      last = taken;
      for (let poll = 0; poll < 10; poll += 1) await settled(relay);
      taken = await leasedIn(relay);
    }
    raw.destroy();
    // What the operating system takes, and an answer or two.
    assert.ok(taken < MESSAGES / 2, `${taken} messages are held for a reader that reads nothing`);
  });

  it("bring no more than fits, and all of it once it is read", async () => {
    await using relay = await openHttpRelay();
    for (let count = 0; count < MESSAGES; count += 1) await relay.send({ body: LONG });
    await using socket = await SocketClient.open(relay.url, `${PATH}?quiet=true`);
    const leases = Array.from({ length: LIMITS.socketRequestsMax }, () => socket.ask("lease", { max: 100 }));
    const answers = await Promise.all(leases);
    const counts = answers.map(({ messages }) => messages.length);
    assert.ok(Math.max(...counts) <= 2, `an answer has ${Math.max(...counts)} messages of 900 kB`);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      MESSAGES,
    );
  });

  it("that wait for messages do not keep each other from it", async () => {
    await using relay = await openHttpRelay();
    await using socket = await SocketClient.open(relay.url, `${PATH}?quiet=true`);
    const waiting = Array.from({ length: 5 }, () => socket.ask("lease", { wait_ms: 60_000 }));
    assert.deepEqual((await socket.ask("lease")).messages, []);
    for (let count = 0; count < waiting.length; count += 1) await relay.send();
    for (const lease of waiting) assert.equal((await lease).messages.length, 1);
  });
});

describe("a socket that closes", TIMEOUT, () => {
  it("waits for no lease any more, and takes none", async () => {
    await using relay = await openHttpRelay();
    const socket = await SocketClient.open(relay.url, `${PATH}?quiet=true`);
    void socket.request("lease", { wait_ms: 60_000 });
    await settled(relay);
    await socket[Symbol.asyncDispose]();
    while ((await metric(relay, 'a2a_relay_open_streams{kind="socket"}')) > 0) continue;
    const { message_id } = await relay.send();
    await settled(relay);
    const { delivery } = (await relay.get(`/messages/${message_id}`)).json;
    assert.deepEqual([delivery.state, delivery.attempt], ["available", 0]);
  });

  it("leaves nothing leased that it asked for while it closed", async () => {
    await using relay = await openHttpRelay();
    const { message_id } = await relay.send();
    const raw = await openRaw(relay);
    const lease = JSON.stringify({ id: "1", verb: "lease" });
    // Both in one piece, so that the close arrives before the lease is on the disk.
    raw.write(Buffer.concat([frameOf(0x81, lease), frameOf(0x88, "\x03\xe8")]));
    await once(raw, "close");
    while ((await metric(relay, 'a2a_relay_open_streams{kind="socket"}')) > 0) continue;
    await settled(relay);
    const { delivery } = (await relay.get(`/messages/${message_id}`)).json;
    assert.equal(delivery.state, "available");
  });

  it("because the relay stops is told so, after everything asked was answered", async () => {
    const relay = await openHttpRelay();
    const sockets = await Promise.all(
      Array.from({ length: 20 }, () => SocketClient.open(relay.url, `${PATH}?quiet=true`)),
    );
    const waiting = sockets.map((socket) => socket.ask("lease", { wait_ms: 60_000 }));
    await settled(relay);
    const stopping = relay[Symbol.asyncDispose]();
    for (const lease of waiting) assert.deepEqual((await lease).messages, []);
    for (const socket of sockets) assert.equal((await socket.closed).code, SOCKET_CLOSE.stopping);
    const late = await Promise.race([stopping, pause(5_000, "too late", { ref: false })]);
    assert.notEqual(late, "too late");
  });

  it("does not hold up a relay that stops, though its other side does not take its answers", async () => {
    const relay = await openHttpRelay();
    const socket = await SocketClient.open(relay.url, `${PATH}?quiet=true`);
    socket.ws.pause();
    for (let count = 0; count < 20; count += 1)
      void socket.request("send", { from: LULU, to: ZHIWEI, body: LONG });
    while ((await acceptedIn(relay)) < 8) continue;
    const startedAt = performance.now();
    await relay[Symbol.asyncDispose]();
    assert.ok(performance.now() - startedAt < 8_000);
    await socket[Symbol.asyncDispose]();
  });

  it("does not hold up a relay that stops, though its other side does not answer", async () => {
    const relay = await openHttpRelay();
    const socket = await SocketClient.open(relay.url, PATH);
    socket.ws.pause();
    const startedAt = performance.now();
    await relay[Symbol.asyncDispose]();
    assert.ok(performance.now() - startedAt < 8_000);
    await socket[Symbol.asyncDispose]();
  });
});
