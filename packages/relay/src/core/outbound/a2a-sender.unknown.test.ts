import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import { AGENT, AGENT_URL, aRemoteTask, type RemoteCore, remoteCore } from "../../../testing/fake-agent.ts";
import { OutboundFailure } from "../../transports/egress/http-client.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { workUnit } from "../mechanisms/own-claims.ts";

const KEY = { tenant: DEFAULT_TENANT, agentId: AGENT };
const IDEMPOTENT = { idempotency: { duplicate_safety: "idempotent", key: "一次" } } as const;

describe("a message that may have arrived", () => {
  const broken = (): never => {
    throw new OutboundFailure("protocol", "it hung up", { mayHaveArrived: true });
  };

  it("is not sent again by itself, whatever happens to its endpoint", async () => {
    await using core = await remoteCore();
    core.agent.send = broken;
    const { messageId } = await core.ask();
    assert.deepEqual(await core.push(), ["unknown"]);
    const endpoint = await core.store.endpoints.get(DEFAULT_TENANT, AGENT);
    assert.ok(endpoint);
    // As after push was switched off and on: all open messages are enqueued again.
    const anew = [{ ...endpoint, afterPosition: 0 }];
    await core.store.commit({ tenant: DEFAULT_TENANT, pushEndpoints: anew, events: [] });
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.deepEqual(await core.push(), []);
    const { push, delivery } = await core.messages.get(core.operator, messageId);
    assert.deepEqual([push?.state, delivery?.state], ["failed", "dead"]);
    assert.match(push?.reason ?? "", /may have arrived/);
  });

  it("stays open for a registered agent, and is sent again by a replay", async () => {
    await using core = await remoteCore();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, callback_url: AGENT_URL, push: "a2a" });
    const push = (): ReturnType<RemoteCore["push"]> => core.push(undefined, ZHIWEI);
    core.agent.send = broken;
    const { taskId } = await core.ask({ to: ZHIWEI });
    assert.deepEqual(await push(), ["unknown"]);
    await core.ask({ to: ZHIWEI, ...IDEMPOTENT });
    assert.deepEqual(await push(), ["failed"]);
    assert.equal((await core.task(taskId)).state, "submitted");
    core.agent.send = () => ({ task: aRemoteTask() });
    await core.pushes.replay(core.operator, ZHIWEI, { since: new Date(0).toISOString() });
    assert.deepEqual(await push(), ["delivered", "delivered"]);
  });

  it("is recorded as unknown when the relay stops before the answer", async () => {
    await using core = await remoteCore();
    const stopping = new AbortController();
    core.agent.send = () => {
      stopping.abort();
      throw new OutboundFailure("aborted", "stopping", { mayHaveArrived: true });
    };
    const { messageId } = await core.ask();
    assert.deepEqual(await core.push(stopping.signal), ["unknown"]);
    assert.match((await core.messages.get(core.operator, messageId)).push?.reason ?? "", /may have arrived/);
  });

  it("is sent again when the relay stopped before the answer, if it is idempotent", async () => {
    await using core = await remoteCore();
    const stopping = new AbortController();
    core.agent.send = () => {
      stopping.abort();
      throw new OutboundFailure("aborted", "stopping", { mayHaveArrived: true });
    };
    await core.ask(IDEMPOTENT);
    assert.deepEqual(await core.push(stopping.signal), ["idle"]);
    core.agent.send = () => ({ task: aRemoteTask() });
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  it("is retried when the relay stopped before the request, marked as sent or not", async () => {
    await using core = await remoteCore();
    const { receiver } = core.agent.outside;
    await core.ask();
    for (const method of ["GET", "POST"]) {
      const stopping = new AbortController();
      core.agent.outside.receiver = (request) => {
        if (request.method !== method) return receiver(request);
        stopping.abort();
        throw new OutboundFailure("aborted", "stopping");
      };
      assert.deepEqual(await core.push(stopping.signal), [method === "GET" ? "idle" : "failed"]);
    }
    core.agent.outside.receiver = receiver;
    core.clock.advance(5_000);
    assert.deepEqual(await core.push(), ["delivered"]);
  });

  it("is reported as unknown by the process after a killed one", async () => {
    await using core = await remoteCore();
    const { messageId } = await core.ask();
    const claim = await core.claim(workUnit("endpoint", KEY.tenant, KEY.agentId));
    while (await core.pushDelivery.enqueue(KEY, claim)) continue;
    const { signal } = new AbortController();
    // It is sent and answered, and never recorded.
    await core.pushDelivery.attempt(KEY, messageId, { claim, signal });
    assert.equal(core.agent.calledFor("SendMessage").length, 1);
    assert.deepEqual(await core.push(), ["unknown"]);
    assert.equal(core.agent.calledFor("SendMessage").length, 1);
  });
});
