import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AGENT, AGENT_URL, aRemoteTask, FakeAgent, RpcError } from "../../../testing/fake-agent.ts";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { HttpOutbound } from "./http-outbound.ts";

const { signal } = new AbortController();
const SETTINGS = { userAgent: "test", pushTimeoutMs: 1_000, publicUrl: () => "http://relay.test" };
const PARAMS = { message: { messageId: "一", role: "ROLE_USER", parts: [{ text: "你好" }] } };

describe("a message to a remote agent", () => {
  const options = { idempotencyKey: "信 一", signal };

  it("is answered with a value, and its key is written as a header can carry it", async () => {
    const agent = new FakeAgent();
    const outbound = new HttpOutbound(agent.outside, new FakeClock(), SETTINGS);
    const found = await outbound.findAgent(AGENT, signal);
    const { reply, at, recorded } = await outbound.sendMessage(found, PARAMS, options);
    assert.deepEqual(reply, { task: aRemoteTask() });
    assert.equal(at.url, `${AGENT}/rpc`);
    assert.deepEqual([recorded.status, recorded.error], [200, null]);
    assert.equal(agent.outside.last.headers["idempotency-key"], "%E4%BF%A1%20%E4%B8%80");
  });

  it("that is refused makes the relay read the agent's card again", async () => {
    const agent = new FakeAgent();
    const outbound = new HttpOutbound(agent.outside, new FakeClock(), SETTINGS);
    const found = await outbound.findAgent(AGENT, signal);
    agent.send = () => {
      throw new RpcError(-32602, "看不懂");
    };
    await assert.rejects(outbound.sendMessage(found, PARAMS, options), { kind: "refused" });
    const { length } = agent.outside.requests;
    await outbound.findAgent(AGENT, signal);
    assert.equal(agent.outside.requests.length, length + 1);
  });

  it("is refused with a reason that a store can keep, whatever the agent wrote", async () => {
    const agent = new FakeAgent();
    const outbound = new HttpOutbound(agent.outside, new FakeClock(), SETTINGS);
    agent.send = () => {
      throw new RpcError(-32602, "看\0不懂\ud800");
    };
    const found = await outbound.findAgent(AGENT, signal);
    const reason = "the agent refused it: 看\uFFFD不懂\uFFFD";
    await assert.rejects(outbound.sendMessage(found, PARAMS, options), { kind: "refused", reason });
  });

  it("is refused when its answer cannot be kept", async () => {
    const agent = new FakeAgent();
    const outbound = new HttpOutbound(agent.outside, new FakeClock(), SETTINGS);
    agent.send = () => ({ task: aRemoteTask({ metadata: { text: "a\u0000b" } }) });
    const found = await outbound.findAgent(AGENT_URL, signal);
    await assert.rejects(outbound.sendMessage(found, PARAMS, options), {
      kind: "refused",
      reason: /^the agent's answer cannot be read: /,
    });
  });
});
