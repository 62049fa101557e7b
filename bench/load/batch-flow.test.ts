import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openHttpRelay } from "../../packages/relay/testing/http-relay.ts";
import { BATCH_MESSAGES, BatchFlow } from "./batch-flow.ts";
import { agentId } from "./messages.ts";

const SHORT_MS = 50;

for (const [name, sockets] of [
  ["one socket", 1],
  ["a socket for each end", 2],
] as const) {
  describe(`a flow of batches over ${name}`, () => {
    it("counts every message once and leaves none behind", async () => {
      await using relay = await openHttpRelay();
      for (const agent_id of [agentId(0), agentId(1)]) await relay.post("/agents/register", { agent_id });
      using flow = await BatchFlow.open(relay.port, sockets);
      const { cycles } = await flow.run(SHORT_MS);
      assert.ok(cycles >= BATCH_MESSAGES && cycles % BATCH_MESSAGES === 0, `${cycles} messages`);
      const left = await relay.get(`/mailbox/${agentId(0)}?peek=true`);
      assert.deepEqual(left.json.messages, []);
    });

    it("fails when its messages cannot be sent", async () => {
      await using relay = await openHttpRelay();
      await relay.post("/agents/register", { agent_id: agentId(1) });
      await assert.rejects(BatchFlow.open(relay.port, sockets), /answered HTTP\/1\.1 404/);
    });
  });
}
