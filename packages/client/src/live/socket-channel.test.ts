import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SOCKET_CLOSE } from "@a2a-relay/protocol";
import { WebSocket as WsWebSocket } from "ws";
import { AGENT, answer, openChannel, page, take } from "../../testing/open-channel.ts";
import { type WireAsk, WireSocket } from "../../testing/wire-socket.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import { fillClientOptions } from "../http/relay-client-options.ts";
import { RelayClient } from "../client/relay-client.ts";
import { SocketChannel } from "./socket-channel.ts";

describe("a socket", () => {
  it("is asked for at its address, with the key as a subprotocol", async () => {
    await using wire = await WireSocket.start({});
    const client = new RelayClient({ url: `${wire.url}/relay`, apiKey: "key_1.a/b+c~?" });
    const channel = await client.openSocket(AGENT, { quiet: true, since: "7", peek: true });
    await channel.close();
    const [socket] = wire.sockets;
    assert.equal(socket?.url.pathname, `/relay/mailbox/${encodeURIComponent(AGENT)}/ws`);
    assert.equal(socket?.url.search, "?quiet=true&peek=true&since=7");
    const [protocol, key = ""] = socket?.protocols ?? [];
    assert.equal(protocol, "a2a-relay.v1");
    assert.match(key, /^a2a-relay\.key\.[\w-]+$/);
    assert.equal(Buffer.from(key.slice("a2a-relay.key.".length), "base64url").toString(), "key_1.a/b+c~?");
  });

  it("may be that of the ws package, where the runtime has none", async () => {
    await using wire = await WireSocket.start({
      onAsk: (ask) => answer(ask, { acknowledged: 1, results: [] }),
    });
    const channel = await openChannel(wire, {}, { webSocket: WsWebSocket });
    assert.equal((await channel.ack({ message_ids: ["m1"] })).acknowledged, 1);
    await channel.close();
  });

  it("answers each request by its id, in whatever order", async () => {
    const waiting: WireAsk[] = [];
    await using wire = await WireSocket.start({
      onAsk: (ask) => {
        waiting.push(ask);
        if (waiting.length === 3)
          for (const each of waiting.toReversed()) answer(each, { results: [each.verb] });
      },
    });
    const channel = await openChannel(wire);
    const lease = { message_id: "m1", lease_id: "l1" };
    const answers = await Promise.all([
      channel.ack({ leases: [lease] }),
      channel.renew({ leases: [lease], lease_ms: 1_000 }),
      channel.release({ leases: [lease] }),
    ]);
    assert.deepEqual(
      answers.map(({ results }) => results),
      [["ack"], ["renew"], ["release"]],
    );
    await channel.close();
  });

  it("sends with a key by which a repetition is recognised, alone and in batches", async () => {
    await using wire = await WireSocket.start({ onAsk: (ask) => answer(ask, {}) });
    const channel = await openChannel(wire);
    await channel.send({ to: "b", body: "知微你好" });
    await channel.sendBatch({ messages: [{ to: "b", body: "1" }], atomic: true });
    await channel.close();
    const [one, batch] = wire.asked.map(({ input }) => input as Record<string, unknown>);
    assert.match(String(one?.["idempotency_key"]), /^[0-9a-f-]{36}$/);
    const [item] = (batch?.["messages"] ?? []) as Record<string, unknown>[];
    assert.match(String(item?.["idempotency_key"]), /^[0-9a-f-]{36}$/);
    assert.equal(batch?.["atomic"], true);
  });

  it("rejects with what the relay refused, and keeps its details", async () => {
    const error = { code: "lease_lost", message: "too late", details: { by: "other" } } as const;
    await using wire = await WireSocket.start({
      onAsk: ({ id, socket }) => socket.say({ type: "answer", id, error }),
    });
    const channel = await openChannel(wire);
    await assert.rejects(channel.fail({ message_id: "m", reason: "no" }), { name: "RelayError", ...error });
    await channel.close();
    assert.equal(wire.asked.length, 1);
  });

  it("asks again when the relay could not do it for the moment, a lease too", async () => {
    const error = { code: "unavailable", message: "not now" } as const;
    await using wire = await WireSocket.start({
      onAsk: (ask) => {
        if (wire.asked.length < 3) ask.socket.say({ type: "answer", id: ask.id, error });
        else answer(ask, { messages: [], cursor: "0" });
      },
    });
    const channel = await openChannel(wire);
    assert.deepEqual((await channel.lease({ max: 1 })).messages, []);
    await channel.close();
    assert.equal(wire.sockets.length, 1);
  });
});

describe("a socket that breaks", () => {
  it("asks again for what may happen twice, over the next one", async () => {
    await using wire = await WireSocket.start({
      onAsk: (ask) =>
        wire.sockets.length < 3 ? ask.socket.reset() : answer(ask, { receipt: { message_id: "m1" } }),
    });
    const channel = await openChannel(wire);
    assert.equal((await channel.send({ to: "b", body: "hi" })).receipt.message_id, "m1");
    await channel.close();
    assert.equal(wire.asked.length, 3);
    assert.equal(
      new Set(wire.asked.map(({ input }) => (input as { idempotency_key: string }).idempotency_key)).size,
      1,
    );
  });

  it("rejects a lease, because the relay may have leased without an answer, and goes on", async () => {
    await using wire = await WireSocket.start({
      onAsk: (ask) =>
        wire.asked.length === 1 ? ask.socket.reset() : answer(ask, { messages: [], cursor: "0" }),
    });
    const channel = await openChannel(wire, { quiet: true });
    await assert.rejects(channel.lease({ wait_ms: 60_000 }), {
      code: "unavailable",
      message: /closed \(code 1006\) before the answer to lease came; the relay may have acted on it/,
    });
    assert.deepEqual((await channel.lease()).messages, []);
    await channel.close();
  });

  it("gives up after the tries that the client allows, and when it stays away for too long", async () => {
    await using wire = await WireSocket.start({ onAsk: ({ socket }) => socket.reset() });
    const channel = await openChannel(wire, {}, { retries: 2, timeoutMs: 300 });
    await assert.rejects(channel.ack({ message_ids: ["m"] }), { code: "unavailable" });
    assert.equal(wire.asked.length, 3);
    await wire.close();
    await assert.rejects(channel.ack({ message_ids: ["m"] }), {
      code: "unavailable",
      message: /could not be opened again within 300 ms/,
    });
    await channel.close();
  });

  it("does not ask again what was too large", async () => {
    await using wire = await WireSocket.start({ onAsk: ({ socket }) => socket.close(SOCKET_CLOSE.tooLarge) });
    const channel = await openChannel(wire);
    await assert.rejects(channel.send({ to: "b", body: "x" }), { code: "too_large" });
    await channel.close();
    assert.equal(wire.asked.length, 1);
  });

  it("is dead when an answer does not come in time", async () => {
    await using wire = await WireSocket.start({
      onAsk: (ask) => {
        if (wire.sockets.length === 2) answer(ask, { acknowledged: 0, results: [] });
      },
    });
    const channel = await openChannel(wire, {}, { timeoutMs: 100 });
    assert.equal((await channel.ack({ message_ids: ["m"] })).acknowledged, 0);
    await channel.close();
    assert.equal(wire.sockets.length, 2);
  });

  it("is probed when it is silent, and is dead without an answer", async () => {
    const probes: string[] = [];
    await using wire = await WireSocket.start({
      onAsk: ({ id, verb, socket }) => {
        probes.push(`${wire.sockets.indexOf(socket)} ${verb}`);
        const error = { code: "invalid_argument", message: "leases: is missing" } as const;
        if (wire.sockets.length === 1 && probes.length < 4) socket.say({ type: "answer", id, error });
      },
      onOpen: (socket) => {
        if (wire.sockets.length === 2) socket.say(page(1));
      },
    });
    const channel = await openChannel(wire, {}, { idleMs: 60 });
    assert.deepEqual(await take(channel, 1), ["10"]);
    await channel.close();
    assert.deepEqual(new Set(probes.slice(0, 4)), new Set(["0 renew"]));
  });

  it("says goodbye for good to a key that opens nothing any more, and waits for a relay that stops", async () => {
    const code: Record<string, number> = {
      unauthenticated: SOCKET_CLOSE.unauthenticated,
      permission_denied: SOCKET_CLOSE.refused,
    };
    for (const [expected, close] of Object.entries(code)) {
      await using wire = await WireSocket.start({
        onAsk: ({ socket }) =>
          socket.close(wire.sockets.length === 1 ? SOCKET_CLOSE.stopping : close, "revoked"),
      });
      const channel = await openChannel(wire);
      const refused = { code: expected, message: "revoked" };
      await assert.rejects(channel.ack({ message_ids: ["m"] }), refused);
      await assert.rejects(take(channel, 1), refused);
      assert.equal(wire.sockets.length, 2);
    }
  });

  it("ends when the relay refuses it over HTTP as well, and not when only the socket is refused", async () => {
    let status = 200;
    let isRefused = false;
    const away: string[] = [];
    await using wire = await WireSocket.start({
      refuse: () => (isRefused ? 404 : undefined),
      onAsk: (ask) => answer(ask, { acknowledged: 7, results: [] }),
      onHttp: () => ({
        status,
        json:
          status === 200
            ? { messages: [], cursor: "0" }
            : { error: { code: "unknown_agent", message: "who?" } },
      }),
    });
    const onAway = ({ message }: Error): void => {
      away.push(message);
      if (away.length === 2) isRefused = false;
      if (away.length === 4) status = 404;
    };
    const channel = await openChannel(wire, { onAway }, { retryDelayMs: 1 });
    isRefused = true;
    wire.sockets[0]?.reset();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await channel.ack({ message_ids: ["m"] })).acknowledged, 7);
    assert.match(away[0] ?? "", /answers, but no WebSocket can be opened; is there a proxy in between/);
    isRefused = true;
    wire.sockets[1]?.reset();
    await assert.rejects(take(channel, 1), { code: "unknown_agent", message: "who?" });
    await assert.rejects(channel.ack({ message_ids: ["m"] }), { code: "unknown_agent" });
  });
});

describe("opening a socket", () => {
  it("rejects with what a plain request is told: that only the socket is blocked, a wrong key, no relay", async () => {
    let json: unknown = { messages: [], cursor: "0" };
    await using wire = await WireSocket.start({
      refuse: () => 426,
      onHttp: () => ({ status: "error" in (json as object) ? 401 : 200, json }),
    });
    await assert.rejects(openChannel(wire), {
      code: "unavailable",
      message: /answers, but no WebSocket can be opened/,
    });
    json = { error: { code: "unauthenticated", message: "which key?" } };
    await assert.rejects(openChannel(wire), { code: "unauthenticated", message: "which key?" });
    await wire.close();
    await assert.rejects(openChannel(wire), { code: "unavailable", message: /ECONNREFUSED/ });
  });

  it("rejects where there is no WebSocket, and says what to do", async () => {
    await using wire = await WireSocket.start({});
    const parts = fillClientOptions({ url: wire.url });
    const options = { ...parts, webSocket: () => undefined };
    const opening = SocketChannel.open({ exchange: new HttpExchange(options), options, agentId: AGENT }, {});
    await assert.rejects(opening, { code: "unavailable", message: /give one as `webSocket`/ });
  });

  it("ends with the reason of the signal", async () => {
    await using wire = await WireSocket.start({});
    const reason = new Error("too late");
    await assert.rejects(openChannel(wire, { signal: AbortSignal.abort(reason) }), reason);
    const leaving = new AbortController();
    const opening = openChannel(wire, { signal: leaving.signal });
    leaving.abort(reason);
    await assert.rejects(opening, reason);
  });
});

describe("a lease whose caller has aborted", () => {
  it("is given back when the relay grants it all the same", async () => {
    const released = Promise.withResolvers<unknown>();
    const leasing = Promise.withResolvers<WireAsk>();
    await using wire = await WireSocket.start({
      onAsk: (ask) =>
        (ask.verb === "lease" ? leasing : released).resolve(
          ask.verb === "lease" ? ask : (ask.input as never),
        ),
    });
    const channel = await openChannel(wire, { quiet: true });
    const leaving = new AbortController();
    const lease = channel.lease({ wait_ms: 60_000 }, { signal: leaving.signal });
    const ask = await leasing.promise;
    leaving.abort(new Error("stopping"));
    await assert.rejects(lease, /stopping/);
    answer(ask, { messages: [{ message_id: "m1", lease: { id: "l1" } }] });
    assert.deepEqual(await released.promise, { leases: [{ message_id: "m1", lease_id: "l1" }] });
    await channel.close();
  });
});
