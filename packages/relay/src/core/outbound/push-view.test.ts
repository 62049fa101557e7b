import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pushingCore } from "../../../testing/pushing-core.ts";
import { OutboundFailure } from "../../transports/egress/http-client.ts";

describe("the record of a push without an answer", () => {
  it("tells senders and the journal only that there was none, and names the host to others", async () => {
    await using core = await pushingCore();
    const { message_id } = (await core.send()).receipt;
    core.outside.receiver = () => {
      throw new OutboundFailure("unreachable", 'no connection to "zhiwei.example" (ECONNREFUSED)');
    };
    do {
      assert.deepEqual(await core.push(), ["failed"]);
      core.clock.advance(Math.min(await core.waitMs(), 24 * 60 * 60 * 1_000));
    } while ((await core.pushedMessage(message_id)).push.state === "pending");

    const { push, receipts } = await core.messages.get(core.lulu, message_id);
    assert.equal(push?.reason, "there was no connection to the endpoint");
    assert.deepEqual(
      new Set(push.attempts.map(({ error }) => error)),
      new Set(["the endpoint gave no answer"]),
    );
    assert.ok(receipts.some(({ stage }) => stage === "push_failed"));
    const { events } = await core.journal.events(core.operator, { limit: 500 });
    assert.doesNotMatch(JSON.stringify([push, receipts, events]), /zhiwei\.example|ECONNREFUSED/);

    for (const reader of [core.zhiwei, core.operator]) {
      const own = await core.messages.get(reader, message_id);
      assert.match(own.push?.attempts[0]?.error ?? "", /"zhiwei\.example" \(ECONNREFUSED\)/);
    }
  });
});
