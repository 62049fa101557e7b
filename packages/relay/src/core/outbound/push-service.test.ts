import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, it } from "node:test";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { HOOK, pushingCore } from "../../../testing/pushing-core.ts";
import type { OutboundRequest } from "../../transports/egress/http-client.ts";

/** Which of the secrets signed the request, in the order of its signatures. */
function signersOf({ headers, body }: OutboundRequest, secrets: readonly string[]): readonly string[] {
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const signers = new Map(
    secrets.map((secret) => {
      const key = Buffer.from(secret.slice("whsec_".length), "base64");
      return [`v1,${createHmac("sha256", key).update(signed).digest("base64")}`, secret];
    }),
  );
  return (headers["webhook-signature"] ?? "").split(" ").map((text) => signers.get(text) ?? "unknown");
}

describe("registering for pushes", () => {
  it("shows the secret once, and registering again keeps it", async () => {
    await using core = await pushingCore();
    const again = await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    assert.deepEqual([again.push_secret, again.agent.push], [undefined, "webhook"]);
    await core.send();
    await core.push();
    assert.deepEqual(signersOf(core.outside.last, [core.secret]), [core.secret]);
  });

  it("is part of every view of the agent until it is switched off", async () => {
    await using core = await pushingCore();
    const shown = async () => {
      const { items } = await core.agents.list(core.lulu, {});
      const inList = items.find(({ agent_id }) => agent_id === ZHIWEI);
      return [(await core.agents.get(core.lulu, ZHIWEI)).push, inList?.push];
    };
    assert.deepEqual(await shown(), ["webhook", "webhook"]);
    const off = await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: null });
    assert.deepEqual([off.agent.push, off.agent.callback_url], [undefined, HOOK]);
    assert.deepEqual(await shown(), [undefined, undefined]);
  });

  it("makes an event without the secret", async () => {
    await using core = await pushingCore();
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, callback_url: null });
    const { events } = await core.journal.events(core.operator, { type: "agent.updated" });
    assert.deepEqual(
      events.map(({ data }) => data["push"]),
      ["webhook", null],
    );
  });

  it("makes no endpoint of a callback URL alone", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, callback_url: HOOK });
    assert.equal((await core.agents.get(core.lulu, ZHIWEI)).push, undefined);
    await assert.rejects(core.pushes.endpoint(core.zhiwei, ZHIWEI, {}), {
      code: "not_found",
      message: /messages to zhiwei@known-blocks1 are not pushed; register it with a callback_url/,
    });
  });

  it("checks the address again, though it was registered before", async () => {
    await using core = await pushingCore();
    const stored = await core.store.agents.get("default", ZHIWEI);
    assert.ok(stored);
    const agents = [{ ...stored.agent, callbackUrl: "http://169.254.169.254/" }];
    await core.store.commit({ tenant: "default", agents, events: [] });
    const register = core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: "webhook" });
    await assert.rejects(register, { code: "invalid_argument", message: /callback_url/ });
  });

  it("after a removal gives a new secret, and nothing of the previous owner", async () => {
    await using core = await pushingCore();
    await core.send();
    await core.push();
    await core.agents.remove(core.zhiwei, ZHIWEI);
    core.clock.advance(1);
    const { push_secret: none } = await core.agents.register(core.operator, {
      agent_id: ZHIWEI,
      callback_url: "https://other.example/",
    });
    assert.equal(none, undefined);
    await assert.rejects(core.pushes.endpoint(core.zhiwei, ZHIWEI, {}), { code: "not_found" });
    const { push_secret: secret } = await core.agents.register(core.operator, {
      agent_id: ZHIWEI,
      push: "webhook",
    });
    assert.ok(secret !== undefined && secret !== core.secret);
    const view = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.deepEqual([view.callback_url, view.pushes], ["https://other.example/", []]);
  });
});

describe("the view of an endpoint", () => {
  it("has its address, its circuit, and its latest pushes with every attempt", async () => {
    await using core = await pushingCore();
    const first = await core.send();
    await core.push();
    core.clock.advance(1_000);
    core.outside.receiver = () => anAnswer(500, { text: "坏了" });
    const second = await core.send();
    await core.push();
    const view = await core.pushes.endpoint(core.zhiwei, "zhiwei", {});
    const { pushes, ...rest } = view;
    assert.deepEqual(rest, {
      agent_id: ZHIWEI,
      push: "webhook",
      callback_url: HOOK,
      notice: false,
      ack: false,
      state: "active",
      failures: 1,
      circuit: "closed",
      pending: 1,
    });
    assert.deepEqual(
      pushes.map((push) => [push.message_id, push.state, push.attempts[0]?.answer]),
      [
        [second.receipt.message_id, "pending", "坏了"],
        [first.receipt.message_id, "delivered", ""],
      ],
    );
    const delivered = await core.pushes.endpoint(core.operator, ZHIWEI, { state: "delivered" });
    assert.equal(delivered.pushes.length, 1);
    assert.equal((await core.pushes.endpoint(core.operator, ZHIWEI, { limit: 1 })).pushes.length, 1);
    assert.doesNotMatch(JSON.stringify(view), /whsec_/);
  });

  it("and all that can be done to it is for the agent itself and for operators", async () => {
    await using core = await pushingCore();
    const denied = { code: "permission_denied" };
    await assert.rejects(core.pushes.endpoint(core.lulu, ZHIWEI, {}), denied);
    await assert.rejects(core.pushes.rotate(core.lulu, ZHIWEI, {}), denied);
    await assert.rejects(core.pushes.replay(core.lulu, ZHIWEI, { since: "2026-01-01T00:00:00Z" }), denied);
    await assert.rejects(core.pushes.rotate(core.lulu, LULU, {}), { code: "not_found" });
  });
});

describe("rotating the secret", () => {
  it("signs with both until the old one ends, then with the new one alone", async () => {
    await using core = await pushingCore();
    const rotated = await core.pushes.rotate(core.zhiwei, ZHIWEI, { overlap_ms: 60_000 });
    assert.equal(rotated.old_secret_until, new Date(core.clock.nowMs() + 60_000).toISOString());
    const secrets = [rotated.push_secret, core.secret];
    const push = async () => {
      await core.send();
      await core.push();
      return signersOf(core.outside.last, secrets);
    };
    assert.deepEqual(await push(), secrets);
    const view = await core.pushes.endpoint(core.zhiwei, ZHIWEI, {});
    assert.equal(view.old_secret_until, rotated.old_secret_until);
    core.clock.advance(59_999);
    assert.deepEqual(await push(), secrets);
    core.clock.advance(1);
    assert.deepEqual(await push(), [rotated.push_secret]);
    assert.equal((await core.pushes.endpoint(core.zhiwei, ZHIWEI, {})).old_secret_until, undefined);
  });

  it("without an overlap ends the old one at once", async () => {
    await using core = await pushingCore();
    const { push_secret } = await core.pushes.rotate(core.operator, ZHIWEI, { overlap_ms: 0 });
    await core.send();
    await core.push();
    assert.deepEqual(signersOf(core.outside.last, [push_secret, core.secret]), [push_secret]);
  });
});

describe("a replay", () => {
  it("pushes all available messages again that were accepted since then", async () => {
    await using core = await pushingCore();
    const old = await core.send();
    core.clock.advance(60_000);
    const since = new Date(core.clock.nowMs()).toISOString();
    const delivered = await core.send();
    await core.push();
    core.outside.receiver = () => anAnswer(500);
    const failed = await core.send();
    for (const waitMs of [0, 5_000, 25_000, 90_000]) {
      core.clock.advance(waitMs);
      await core.push();
    }
    const done = await core.send();
    await core.mailboxes.ack(core.zhiwei, ZHIWEI, { message_ids: [done.receipt.message_id] });
    core.outside.receiver = () => anAnswer(200);
    core.outside.requests.length = 0;
    assert.deepEqual(await core.pushes.replay(core.zhiwei, ZHIWEI, { since }), {
      agent_id: ZHIWEI,
      replayed: 2,
    });
    assert.deepEqual(await core.push(), ["delivered", "delivered"]);
    assert.deepEqual(core.outside.ids, [delivered.receipt.message_id, failed.receipt.message_id]);
    assert.equal((await core.pushedMessage(old.receipt.message_id)).push.attempts.length, 1);
    const { attempts } = (await core.pushedMessage(failed.receipt.message_id)).push;
    assert.deepEqual(
      attempts.map(({ attempt, status }) => [attempt, status]),
      [
        [1, 500],
        [2, 500],
        [3, 500],
        [4, 500],
        [5, 200],
      ],
    );
    const { events } = await core.journal.events(core.operator, { type: "push.replayed" });
    assert.deepEqual(
      events.map(({ actor, agent, data }) => [actor, agent, data]),
      [[ZHIWEI, ZHIWEI, { since, replayed: 2 }]],
    );
  });

  it("has all its attempts again, and closes the circuit", async () => {
    await using core = await pushingCore();
    for (let index = 0; index < 5; index += 1) await core.send();
    core.outside.receiver = () => anAnswer(500);
    await core.push();
    assert.equal((await core.pushes.endpoint(core.zhiwei, ZHIWEI, {})).circuit, "open");
    for (let replay = 1; replay <= 5; replay += 1) {
      await core.pushes.replay(core.operator, ZHIWEI, { since: "2026-01-01T00:00:00Z" });
      assert.equal((await core.push()).length, 5);
    }
    const [push] = (await core.pushes.endpoint(core.zhiwei, ZHIWEI, {})).pushes;
    assert.deepEqual([push?.state, push?.attempts.length], ["pending", 6]);
  });

  it("reads messages in pages, in the order of acceptance", async () => {
    await using core = await pushingCore();
    const messages = Array.from({ length: 230 }, (_, index) => ({
      id: `m${230 - index}`,
      from: LULU,
      to: ZHIWEI,
      body: "好",
    }));
    await core.messages.sendBatch(core.operator, { messages });
    await core.push();
    core.outside.requests.length = 0;
    const { replayed } = await core.pushes.replay(core.operator, ZHIWEI, { since: "1970-01-01T00:00:00Z" });
    assert.equal(replayed, 230);
    await core.push();
    assert.deepEqual(
      core.outside.ids,
      messages.map(({ id }) => id),
    );
  });

  it("is refused while the endpoint is disabled, and for what is no time", async () => {
    await using core = await pushingCore();
    await assert.rejects(core.pushes.replay(core.zhiwei, ZHIWEI, { since: "gestern" }), {
      code: "invalid_argument",
      message: /^since: expected an ISO 8601 time/,
    });
    await assert.rejects(core.pushes.replay(core.zhiwei, ZHIWEI, {}), { code: "invalid_argument" });
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, push: null });
    await assert.rejects(core.pushes.replay(core.zhiwei, ZHIWEI, { since: "2026-01-01T00:00:00Z" }), {
      code: "wrong_state",
      message: /is disabled \(the agent switched push off\); register it again/,
    });
  });
});
