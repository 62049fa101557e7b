import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { loadConfig } from "../../packages/relay/src/config/load-config.ts";
import { startRelay } from "../../packages/relay/src/server/start-relay.ts";
import { FakeClock } from "../../packages/relay/testing/fake-clock.ts";
import { ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { openOutsideServer } from "../../packages/relay/testing/outside-network.ts";
import { ask } from "../support/ask.ts";
import { eventually } from "../support/eventually.ts";
import { type Answering, answers, PushReceiver, signaturesBy, with200 } from "../support/push-receiver.ts";
import { ENV, KAMES, openPushingRelay } from "../support/pushing-relay.ts";
import { storeFlags } from "../../packages/relay/testing/chosen-store.ts";

const dropByDrop: Answering = (response) => {
  response.writeHead(200, { "content-length": "1000" });
  const timer = setInterval(() => response.write("."), 20);
  response.on("close", () => clearInterval(timer));
};

describe("a receiver", () => {
  it("that is wrong, then right, is tried again with the same id until it is", async () => {
    await using receiver = await PushReceiver.open(answers(500, 404, 200));
    await using relay = await openPushingRelay();
    const secret = await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    const { push, receipts } = await relay.until("message.delivered", message_id);
    assert.deepEqual(receiver.ids, [message_id, message_id, message_id]);
    assert.ok(receiver.requests.every((request) => signaturesBy(secret, request) === 1));
    assert.deepEqual(
      push.attempts.map(({ attempt, status, answer }) => [attempt, status, answer]),
      [
        [1, 500, "第 1 次"],
        [2, 404, "第 2 次"],
        [3, 200, "第 3 次"],
      ],
    );
    assert.deepEqual([receipts.at(-1)?.stage, receipts.at(-1)?.attempt], ["delivered", 3]);
  });

  it("that answers 410 is called no more until the agent asks for it", async () => {
    await using receiver = await PushReceiver.open(answers(410, 200));
    await using relay = await openPushingRelay();
    const secret = await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    const { push, receipts, delivery } = await relay.until("message.push_failed", message_id);
    assert.deepEqual([push.state, push.attempts.length], ["failed", 1]);
    assert.deepEqual([receipts.at(-1)?.stage, delivery?.state], ["push_failed", "available"]);
    const gone = await relay.endpoint();
    assert.deepEqual([gone.state, gone.reason], ["disabled", "the endpoint answered 410: it is gone"]);
    await relay.refused(
      relay.post(`/agents/${ZHIWEI}/push/replay`, { since: "2026-01-01T00:00:00Z" }),
      "wrong_state",
      /disabled/,
    );
    assert.equal(await relay.pushTo(receiver.url), "", "the secret is the same");
    await relay.until("message.delivered", message_id);
    assert.ok(receiver.requests.every((request) => signaturesBy(secret, request) === 1));
  });

  it("that answers 429 with Retry-After is called after that time", async () => {
    await using receiver = await PushReceiver.open((response, number) => {
      response.writeHead(number === 1 ? 429 : 200, { "retry-after": "1" }).end();
    });
    await using relay = await openPushingRelay();
    await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    await relay.until("message.delivered", message_id);
    const [first, second] = receiver.requests;
    const waitedMs = (second?.atMs ?? 0) - (first?.atMs ?? 0);
    assert.ok(waitedMs >= 990, `${waitedMs} ms`);
  });

  it("that redirects is not followed", async () => {
    await using inside = await PushReceiver.open();
    await using receiver = await PushReceiver.open((response) => {
      response.writeHead(307, { location: encodeURI(inside.url) }).end();
    });
    await using relay = await openPushingRelay();
    await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    const { push } = await relay.until("message.push_failed", message_id);
    assert.equal(push.attempts.length, 4);
    assert.match(push.reason ?? "", /answered 307; redirects are not followed/);
    assert.equal(inside.requests.length, 0);
  });

  it("that answers without an end is understood by its beginning", async () => {
    await using receiver = await PushReceiver.open((response) => {
      response.writeHead(200);
      const more = (): void => {
        while (response.writable && response.write("没完没了".repeat(1_000))) continue;
      };
      response.on("drain", more);
      more();
    });
    await using relay = await openPushingRelay();
    await relay.pushTo(receiver.url);
    const { message_id } = await relay.send();
    const { push } = await relay.until("message.delivered", message_id);
    const answer = push.attempts[0]?.answer ?? "";
    assert.ok(answer.startsWith("没完没了"));
    assert.ok(Buffer.byteLength(answer) <= LIMITS.pushAnswerBytesMax + 3, `${answer.length}`);
  });

  for (const [what, words, answering] of [
    ["hangs", /no whole answer within 250 ms/, () => undefined],
    ["answers drop by drop", /no whole answer within 250 ms/, dropByDrop],
    ["hangs up", /no whole HTTP answer/, (response) => void response.destroy()],
  ] as const satisfies readonly (readonly [string, RegExp, Answering])[]) {
    it(`that ${what} fails like any other, and the message stays`, async () => {
      await using receiver = await PushReceiver.open(answering);
      await using relay = await openPushingRelay({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0,20" } });
      await relay.pushTo(receiver.url);
      const { message_id } = await relay.send();
      const { push, delivery } = await relay.until("message.push_failed", message_id);
      assert.equal(push.attempts.length, 2);
      for (const { status, error } of push.attempts) {
        assert.equal(status, undefined);
        assert.match(error ?? "", words);
      }
      assert.equal(delivery?.state, "available");
    });
  }

  it("that does not listen, and one that talks garbage instead of TLS, fail with a reason", async () => {
    await using garbage = await openOutsideServer((socket) => void socket.write("随便说点什么\r\n\r\n"));
    const closed = await openOutsideServer(() => undefined);
    await closed[Symbol.asyncDispose]();
    await using relay = await openPushingRelay({ env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0" } });
    for (const [url, words] of [
      [`https://127.0.0.1:${garbage.port}/`, /TLS/],
      [`http://127.0.0.1:${closed.port}/`, /ECONNREFUSED/],
    ] as const) {
      await relay.pushTo(url);
      const { message_id } = await relay.send();
      const { push } = await relay.until("message.push_failed", message_id);
      assert.match(push.attempts[0]?.error ?? "", words);
    }
  });

  it("inside is refused when it is registered, and not called where it is allowed no more", async () => {
    await using receiver = await PushReceiver.open();
    await using stack = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "push-egress-"));
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const flags = { data: join(directory, "data") };
    const wanted = { agent_id: KAMES, callback_url: receiver.url, push: "webhook" };
    {
      const shared = { ...flags, ...(await storeFlags(flags.data)), port: "0", "log-level": "silent" };
      const config = loadConfig({ flags: shared, env: ENV });
      await using allowed = await startRelay(config);
      assert.equal((await ask(allowed.url, "POST", "/agents/register", wanted)).status, 201);
    }
    const env = { A2A_RELAY_EGRESS_ALLOW: "", A2A_RELAY_PUSH_ATTEMPTS_MS: "0" };
    await using relay = await openPushingRelay({ flags, env });
    const { message_id } = await relay.send({ to: KAMES });
    const { push } = await relay.until("message.push_failed", message_id);
    assert.match(push.attempts[0]?.error ?? "", /A2A_RELAY_EGRESS_ALLOW/);
    await relay.refused(relay.post("/agents/register", wanted), "invalid_argument", /callback_url/);
    assert.equal(receiver.requests.length, 0);
  });

  it("that fails five times in a row is left alone, probed, and trusted again", async () => {
    const clock = new FakeClock(Date.now());
    await using receiver = await PushReceiver.open(answers(503));
    await using relay = await openPushingRelay({ clock, env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0,600000" } });
    await relay.pushTo(receiver.url);
    for (let index = 0; index < 8; index += 1) await relay.send();
    await receiver.arrived(5);
    const view = await eventually(
      () => relay.endpoint(),
      ({ circuit }) => circuit === "open",
    );
    assert.deepEqual([view.failures, view.pending], [5, 8]);
    assert.equal(view.open_until, new Date(clock.nowMs() + 30_000).toISOString());
    assert.equal(receiver.requests.length, 5);
    receiver.answering = with200;
    clock.advance(30_000);
    // A new message makes it read the clock again.
    await relay.send();
    await receiver.arrived(9);
    const after = await eventually(
      () => relay.endpoint(),
      ({ pending }) => pending === 5,
    );
    assert.deepEqual([after.circuit, after.failures], ["closed", 0]);
    assert.equal((await relay.endpoint("?state=delivered")).pushes.length, 4);
  });
});
