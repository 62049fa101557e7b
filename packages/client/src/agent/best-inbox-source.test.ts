import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { ASKER, WORKER } from "../../testing/agent-setup.ts";
import { ProxiedRelay } from "../../testing/proxied-relay.ts";
import { RelayClient } from "../client/relay-client.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import { fillClientOptions } from "../http/relay-client-options.ts";
import { BestInboxSource } from "./best-inbox-source.ts";
import { type InboxTransport, PollInboxSource } from "./inbox-source.ts";
import { StreamInboxSource } from "./stream-inbox-source.ts";

const { signal } = new AbortController();

type Mood = "open" | "blocked" | "away";

/** Transports without messages, which are open, blocked or away as the test sets them. */
function setup(...names: readonly string[]) {
  const log: string[] = [];
  const moods: Record<string, Mood> = {};
  const clock = { nowMs: 0 };
  const transports = names.map((name): InboxTransport => ({
    open: async () => {
      log.push(`try ${name}`);
      if (moods[name] === "blocked") throw new TransportBlocked(`${name} is blocked`);
      if (moods[name] === "away") throw new RelayError("unavailable", "no relay");
      return {
        lease: async () => {
          log.push(name);
          if (moods[name] === "away") throw new RelayError("unavailable", `${name} broke`);
          return { messages: [] };
        },
        close: async () => void log.push(`close ${name}`),
      };
    },
  }));
  const options = { againMs: 1_000, random: () => 0.5, nowMs: () => clock.nowMs };
  const source = new BestInboxSource(transports, options);
  /** Leases once, and answers with what that set off. */
  const lease = async (): Promise<string> => {
    log.length = 0;
    await source.lease({}, { signal }).catch((reason: unknown) => log.push(`! ${String(reason)}`));
    // What was set off beside the lease.
    await new Promise((resolve) => setImmediate(resolve));
    return log.join(", ");
  };
  return { source, lease, moods, clock, log };
}

describe("the best transport to the inbox", () => {
  it("is the first that is open, and stays open", async () => {
    const { lease, source, log } = setup("socket", "stream", "poll");
    assert.equal(await lease(), "try socket, socket");
    assert.equal(await lease(), "socket");
    await source.close();
    assert.equal(log.at(-1), "close socket");
  });

  it("is the next one where a better one is blocked, which is left alone for a while and tried again", async () => {
    const { lease, moods, clock } = setup("socket", "stream", "poll");
    moods["socket"] = "blocked";
    moods["stream"] = "blocked";
    assert.equal(await lease(), "try socket, try stream, try poll, poll");
    clock.nowMs = 1_499;
    assert.equal(await lease(), "poll");
    clock.nowMs = 1_500;
    moods["stream"] = "open";
    assert.equal(await lease(), "try socket, try stream, poll");
    assert.equal(await lease(), "close poll, stream");
    clock.nowMs = 3_000;
    moods["socket"] = "open";
    assert.equal(await lease(), "try socket, stream");
    assert.equal(await lease(), "close stream, socket");
    assert.equal(await lease(), "socket");
  });

  it("is not concluded from the absence of the relay", async () => {
    const { lease, moods } = setup("socket", "stream", "poll");
    moods["socket"] = "blocked";
    moods["stream"] = "away";
    assert.equal(await lease(), "try socket, try stream, ! RelayError: no relay");
    moods["stream"] = "open";
    assert.equal(await lease(), "try stream, stream");
  });

  it("is chosen again after a failure", async () => {
    const { lease, moods } = setup("socket", "stream", "poll");
    await lease();
    moods["socket"] = "away";
    assert.equal(await lease(), "socket, close socket, ! RelayError: socket broke");
    moods["socket"] = "blocked";
    assert.equal(await lease(), "try socket, try stream, stream");
  });

  it("is tried each time when it is the only one", async () => {
    const { lease, moods } = setup("socket");
    moods["socket"] = "blocked";
    assert.equal(await lease(), "try socket, ! RelayError: socket is blocked");
    assert.equal(await lease(), "try socket, ! RelayError: socket is blocked");
    moods["socket"] = "open";
    assert.equal(await lease(), "try socket, socket");
  });

  it("is searched only while the caller waits", async () => {
    const reason = new Error("left");
    const { source, log } = setup("socket", "poll");
    const hanging: InboxTransport = {
      open: (call) =>
        new Promise((_, reject) => {
          call.signal.addEventListener("abort", () => reject(call.signal.reason as Error));
        }),
    };
    const leaving = new AbortController();
    const leasing = new BestInboxSource([hanging]).lease({}, { signal: leaving.signal });
    leaving.abort(reason);
    await assert.rejects(leasing, reason);
    await source.close();
    assert.deepEqual(log, []);
  });
});

describe("a stream of notices", () => {
  const setupStream = async (more: object = {}) => {
    const relay = await ProxiedRelay.start();
    for (const agent_id of [ASKER, WORKER]) await relay.direct.register({ agent_id });
    const options = fillClientOptions({ url: relay.url, retryDelayMs: 1 });
    const client = new RelayClient({ url: relay.url });
    const exchange = new HttpExchange(options);
    const delays = { firstMs: 1, maxMs: 10 };
    const parts = { client, exchange, agentId: WORKER, delays, ...more };
    const message = { from: ASKER, to: WORKER, body: "知微你好" };
    return {
      relay,
      client,
      parts,
      send: () => relay.direct.send(message),
      [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose](),
    };
  };

  it("that a proxy holds back gives way to long polls", async () => {
    await using all = await setupStream({ firstByteMs: 50 });
    all.relay.streams = "hold";
    const stream = {
      open: (call: { readonly signal: AbortSignal }) => StreamInboxSource.open(all.parts, call),
    };
    await assert.rejects(stream.open({ signal }), TransportBlocked);
    const source = new BestInboxSource([stream, new PollInboxSource(all.client, WORKER)]);
    const leasing = source.lease({ wait_ms: 10_000 }, { signal });
    await all.send();
    assert.equal((await leasing).messages[0]?.message.body, "知微你好");
    await source.close();
  });

  it("wakes a waiting lease, and is opened again when it ends, without an error", async () => {
    await using all = await setupStream();
    const source = await StreamInboxSource.open(all.parts, { signal });
    const isStream = (line: string): boolean => line.startsWith("GET") && line.endsWith("/stream");
    const isAnswered = (line: string): boolean => line.startsWith("answered") && line.endsWith("/lease");
    const leasing = source.lease({ lease_ms: 60_000 }, { signal });
    await all.relay.came(isAnswered);
    await all.send();
    assert.equal((await leasing).messages.length, 1);
    const again = source.lease({}, { signal });
    await all.relay.came(isAnswered, 3);
    all.relay.endStreams();
    await all.relay.came(isStream, 2);
    await all.send();
    assert.equal((await again).messages.length, 1);
    await source.close();
  });

  it("is not relied on for ever: a message may become available without a notice", async () => {
    await using all = await setupStream({ pollAgainMs: 30 });
    const source = await StreamInboxSource.open(all.parts, { signal });
    assert.deepEqual(await source.lease({}, { signal }), { messages: [] });
    await source.close();
  });
});
