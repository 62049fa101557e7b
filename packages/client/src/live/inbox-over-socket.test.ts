import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RelayError } from "@a2a-relay/protocol";
import { ProxiedRelay } from "../../testing/proxied-relay.ts";
import { RelayClient } from "../client/relay-client.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import type { InboxFrame } from "./inbox-frames.ts";

const LULU = "lulu@kamac";
const ZHIWEI = "zhiwei@known-blocks1";
const SOCKET = `upgrade /mailbox/${encodeURIComponent(ZHIWEI)}/ws`;
const STREAM = `GET /mailbox/${encodeURIComponent(ZHIWEI)}/stream`;
const BODIES = Array.from({ length: 8 }, (_, index) => `第${index}封`);

/** A relay with two agents, and a client whose way to it can be cut. */
async function open() {
  const relay = await ProxiedRelay.start();
  for (const agent_id of [LULU, ZHIWEI]) await relay.direct.register({ agent_id });
  const client = new RelayClient({ url: relay.url, retryDelayMs: 1, retryDelayMsMax: 20 });
  const send = (body: string) => relay.direct.send({ from: LULU, to: ZHIWEI, body });
  return { relay, client, send, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

function bodiesIn(frame: InboxFrame): readonly string[] {
  return frame.type === "mail" ? frame.messages.map(({ message }) => message.body) : [];
}

describe("a mailbox that is followed", () => {
  it("comes over a socket, whole and once, cut after every page, with a restart in the middle", async () => {
    await using all = await open();
    for (const body of BODIES.slice(0, 4)) await all.send(body);
    const seen: string[] = [];
    for await (const frame of all.client.followMailbox(ZHIWEI)) {
      seen.push(...bodiesIn(frame));
      if (seen.length === BODIES.length) break;
      if (seen.length === 5) {
        await all.relay.stopRelay();
        await all.relay.startRelay();
      }
      await all.send(BODIES[seen.length] ?? "");
      all.relay.cut();
    }
    assert.deepEqual(seen, BODIES);
    assert.ok(all.relay.seen.includes(SOCKET));
    assert.ok(!all.relay.seen.includes(STREAM));
  });

  it("goes on as a stream, whole and once, when from some moment on no socket can be opened", async () => {
    await using all = await open();
    await all.send(BODIES[0] ?? "");
    const away: RelayError[] = [];
    const seen: string[] = [];
    for await (const frame of all.client.followMailbox(ZHIWEI, {}, { onAway: (error) => away.push(error) })) {
      seen.push(...bodiesIn(frame));
      if (seen.length === BODIES.length) break;
      all.relay.sockets = "refuse";
      all.relay.cut();
      await all.send(BODIES[seen.length] ?? "");
    }
    assert.deepEqual(seen, BODIES);
    assert.ok(all.relay.seen.includes(STREAM));
    assert.equal(all.relay.seen.filter((line) => line === SOCKET).length, 4);
    assert.deepEqual(
      away.slice(0, 2).map((error) => error instanceof TransportBlocked),
      [true, true],
    );
  });

  it("waits for a relay that is away, at the beginning and later, and concludes nothing from that", async () => {
    await using all = await open();
    const absence = async (count: number): Promise<void> => {
      await all.relay.came((line) => line === SOCKET, count);
      await all.relay.startRelay();
      await all.send(`after ${count}`);
    };
    await all.relay.stopRelay();
    const seen: string[] = [];
    let back = absence(5);
    for await (const frame of all.client.followMailbox(ZHIWEI)) {
      seen.push(...bodiesIn(frame));
      await back;
      if (seen.length === 2) break;
      await all.relay.stopRelay();
      back = absence(15);
    }
    assert.deepEqual(seen, ["after 5", "after 15"]);
    assert.ok(!all.relay.seen.includes(STREAM));
  });

  it("begins after a cursor, and gives notices that leave no mark", async () => {
    await using all = await open();
    await all.send("一");
    const { cursor } = await all.relay.direct.readMailbox(ZHIWEI, { peek: true });
    const { receipt } = await all.send("二");
    for (const sockets of ["pass", "refuse"] as const) {
      all.relay.sockets = sockets;
      for await (const frame of all.client.followMailbox(ZHIWEI, { since: cursor, notice: true })) {
        assert.equal(frame.type, "notice");
        const ids = frame.type === "notice" ? frame.notices.map(({ message_id }) => message_id) : [];
        assert.deepEqual(ids, [receipt.message_id]);
        break;
      }
    }
    const { messages } = await all.relay.direct.readMailbox(ZHIWEI, { peek: true });
    assert.deepEqual(
      messages.map(({ status }) => status),
      ["PENDING", "PENDING"],
    );
  });

  it("ends with the reason of the signal", async () => {
    await using all = await open();
    await all.send("one");
    const ending = new AbortController();
    const reason = new Error("enough");
    const seen: string[] = [];
    const following = async (): Promise<void> => {
      for await (const frame of all.client.followMailbox(ZHIWEI, {}, { signal: ending.signal })) {
        seen.push(...bodiesIn(frame));
        ending.abort(reason);
      }
    };
    await assert.rejects(following(), reason);
    assert.deepEqual(seen, ["one"]);
  });

  it("is refused with the relay's own words for an unknown agent", async () => {
    await using all = await open();
    const frames = all.client.followMailbox("ghost@x")[Symbol.asyncIterator]();
    await assert.rejects(frames.next(), { code: "unknown_agent" });
  });
});
