import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

describe("show", () => {
  it("tells one message with its delivery and its receipts", async () => {
    await using relay = await openCliRelay();
    const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, body: "知微你好" });
    await relay.client.ack(ZHIWEI, { message_ids: [receipt.message_id] });
    const text = await relay.ok(["show", receipt.message_id]);
    assert.match(text, /知微你好/);
    assert.match(text, /^acknowledged$/m);
    assert.match(text, /^accepted .*\n^acknowledged /m);
    const { code, stderr } = await relay.run(["show", "msg_unknown"]);
    assert.equal(code, 1);
    assert.match(stderr, /there is no message msg_unknown/);
  });
});
