import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProxiedRelay } from "../../testing/proxied-relay.ts";
import { RelayClient } from "./relay-client.ts";

const LULU = "lulu@kamac";
const ZHIWEI = "zhiwei@known-blocks1";
const BODIES = Array.from({ length: 8 }, (_, index) => `第${index}封`);

/** A relay with two agents, and a client whose way to it can be cut. */
async function open(env: Readonly<Record<string, string>> = {}, apiKey?: string) {
  const relay = await ProxiedRelay.start(env);
  for (const agent_id of [LULU, ZHIWEI]) await relay.direct.register({ agent_id });
  const client = new RelayClient({ url: relay.url, retryDelayMs: 1, retryDelayMsMax: 20, apiKey });
  const send = (body: string) => relay.direct.send({ from: LULU, to: ZHIWEI, body });
  return { relay, client, send, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

describe("a mailbox of a relay", () => {
  it("comes as a stream, whole and once, cut after every message, with a restart in the middle", async () => {
    await using all = await open();
    for (const body of BODIES.slice(0, 4)) await all.send(body);
    const seen: string[] = [];
    for await (const { item } of all.client.streamMailbox(ZHIWEI)) {
      seen.push(item.message.body);
      if (seen.length === BODIES.length) break;
      if (seen.length === 5) {
        await all.relay.stopRelay();
        await all.relay.startRelay();
      }
      if (seen.length >= 4) await all.send(BODIES[seen.length] ?? "");
      all.relay.cut();
    }
    assert.deepEqual(seen, BODIES);
  });

  it("comes over a socket, whole and once, cut after every page, with a restart in the middle", async () => {
    await using all = await open();
    for (const body of BODIES.slice(0, 4)) await all.send(body);
    const channel = await all.client.openSocket(ZHIWEI);
    const seen: string[] = [];
    for await (const frame of channel.frames()) {
      assert.equal(frame.type, "mail");
      if (frame.type === "mail") seen.push(...frame.messages.map(({ message }) => message.body));
      if (seen.length === BODIES.length) break;
      if (seen.length === 5) {
        await all.relay.stopRelay();
        await all.relay.startRelay();
      }
      if (seen.length >= 4) await all.send(BODIES[seen.length] ?? "");
      all.relay.cut();
    }
    await channel.close();
    assert.deepEqual(seen, BODIES);
  });

  it("gives notices that leave no mark", async () => {
    await using all = await open();
    const { receipt } = await all.send("知微你好");
    for await (const { notice } of all.client.streamMailbox(ZHIWEI, { notice: true })) {
      assert.equal(notice.message_id, receipt.message_id);
      assert.equal(notice.sender_agent_id, LULU);
      break;
    }
    const { messages } = await all.relay.direct.readMailbox(ZHIWEI, { peek: true });
    assert.equal(messages[0]?.status, "PENDING");
  });
});

describe("a socket to a relay", () => {
  it("sends, leases, renews, releases, acknowledges and fails, with an agent's own key", async () => {
    await using all = await open({ A2A_RELAY_API_KEY: "operator-key-of-this-test" });
    const { key } = await all.relay.direct.createKey({ agent_id: ZHIWEI });
    const client = new RelayClient({ url: all.relay.url, apiKey: key });
    const channel = await client.openSocket(ZHIWEI, { quiet: true });
    const sent = await channel.send({ to: LULU, body: "从套接字来" });
    assert.equal(sent.message.from, ZHIWEI);
    const batch = await channel.sendBatch({
      messages: [
        { to: LULU, body: "一" },
        { to: "ghost@x", body: "二" },
      ],
    });
    assert.deepEqual(
      batch.results.map(({ status }) => status),
      [201, 404],
    );
    const waiting = channel.lease({ max: 3, lease_ms: 60_000, wait_ms: 20_000 });
    await all.send("a");
    const [item] = (await waiting).messages;
    assert.ok(item);
    const lease = { message_id: item.message_id, lease_id: item.lease.id };
    assert.equal((await channel.renew({ leases: [lease], lease_ms: 60_000 })).renewed, 1);
    assert.equal((await channel.release({ leases: [lease] })).released, 1);
    assert.equal((await channel.ack({ message_ids: [item.message_id] })).acknowledged, 1);
    const { receipt } = await all.send("b");
    const dead = await channel.fail({ message_id: receipt.message_id, reason: "not for me" });
    assert.equal(dead.state, "dead");
    await assert.rejects(channel.fail({ message_id: "msg_unknown", reason: "x" }), { code: "not_found" });
    await channel.close();
  });

  it("is refused with the relay's own words to a wrong key and an unknown agent", async () => {
    await using all = await open({ A2A_RELAY_API_KEY: "operator-key-of-this-test" });
    const stranger = new RelayClient({ url: all.relay.url, apiKey: "wrong" });
    await assert.rejects(stranger.openSocket(ZHIWEI), { code: "unauthenticated" });
    await assert.rejects(all.relay.direct.openSocket("ghost@x"), { code: "unknown_agent" });
  });

  it("ends for good when its key is revoked, and so does a stream", async () => {
    await using all = await open({
      A2A_RELAY_API_KEY: "operator-key-of-this-test",
      A2A_RELAY_HEARTBEAT_MS: "50",
    });
    const { key, key_id } = await all.relay.direct.createKey({ agent_id: ZHIWEI });
    const client = new RelayClient({ url: all.relay.url, apiKey: key, retryDelayMs: 1 });
    const channel = await client.openSocket(ZHIWEI);
    const ended = Promise.allSettled([first(channel.frames()), first(client.streamMailbox(ZHIWEI))]);
    await all.relay.came((line) => line.endsWith("/stream"));
    await all.relay.direct.revokeKey(key_id);
    for (const end of await ended) {
      assert.equal(
        end.status === "rejected" && (end.reason as { readonly code?: string }).code,
        "unauthenticated",
      );
    }
  });
});

describe("streams of facts", { timeout: 60_000 }, () => {
  it("follow a task to its end, also when the stream is cut after each event", async () => {
    await using all = await open();
    const { receipt } = await all.relay.direct.send({
      from: LULU,
      to: ZHIWEI,
      type: "request",
      body: "请做",
    });
    const taskId = receipt.task_id ?? "";
    const types: string[] = [];
    for await (const { event } of all.client.streamTask(taskId)) {
      types.push(event.type);
      if (types.length === 1) await all.relay.direct.completeTask(taskId, { text: "完成" });
      all.relay.cut();
    }
    assert.deepEqual(types, ["message.accepted", "message.acknowledged", "task.completed"]);
  });

  it("follow a task to its end without gap or repetition, with a restart in the middle", async () => {
    await using all = await open();
    const asked = { from: LULU, to: ZHIWEI, type: "request", body: "请做" } as const;
    const { receipt } = await all.relay.direct.send(asked);
    const taskId = receipt.task_id ?? "";
    const [work] = (await all.relay.direct.lease(ZHIWEI)).messages;
    const seqs: number[] = [];
    const signal = AbortSignal.timeout(30_000);
    const { promise: halfway, resolve: isHalfway } = Promise.withResolvers<void>();
    const followed = (async () => {
      for await (const { event } of all.client.streamTask(taskId, {}, { signal })) {
        seqs.push(event.seq);
        if (seqs.length === 2) isHalfway();
      }
    })();
    await Promise.race([halfway, followed]);
    await all.relay.stopRelay();
    // It retries while there is no relay.
    const isStream = (line: string): boolean => line === `GET /tasks/${taskId}/events`;
    await all.relay.came(isStream, all.relay.seen.filter(isStream).length + 1);
    await all.relay.startRelay();
    await all.relay.direct.completeTask(taskId, { text: "完成", lease_id: work?.lease.id ?? "" });
    await followed;
    const journal = await all.relay.direct.events();
    const ofTask = journal.events.filter(({ task_id }) => task_id === taskId);
    // The message that tells of the end comes after it.
    const events = ofTask.slice(0, ofTask.findIndex(({ type }) => type === "task.completed") + 1);
    assert.deepEqual(
      seqs,
      events.map(({ seq }) => seq),
    );
    assert.deepEqual(
      events.map(({ type }) => type),
      ["message.accepted", "message.leased", "message.acknowledged", "task.completed"],
    );
  });

  it("follow the journal without gap or repetition, cut after each event", async () => {
    await using all = await open();
    const { cursor } = await all.relay.direct.events({ since: "latest" });
    for (const body of BODIES) await all.send(body);
    const seqs: number[] = [];
    for await (const { event } of all.client.streamEvents({ since: cursor, type: "message.accepted" })) {
      seqs.push(event.seq);
      if (seqs.length === BODIES.length) break;
      all.relay.cut();
    }
    const { events } = await all.relay.direct.events({ since: cursor, type: "message.accepted" });
    assert.deepEqual(
      seqs,
      events.map(({ seq }) => seq),
    );
  });
});

async function first<T>(iterable: AsyncIterable<T>): Promise<T | undefined> {
  for await (const value of iterable) return value;
  return undefined;
}
