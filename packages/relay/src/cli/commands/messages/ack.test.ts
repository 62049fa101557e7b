import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("ack", () => {
  it("settles what it can and exits with 1 for the rest", async () => {
    await using relay = await openCliRelay();
    const { receipt } = (await relay.json(HELLO)) as { readonly receipt: { readonly message_id: string } };
    const { code, stderr } = await relay.run(["ack", ZHIWEI, receipt.message_id, "no-such-message"]);
    assert.equal(code, 1);
    assert.match(stderr, /acknowledged 1 of 2\nerror: no-such-message: /);
    assert.deepEqual((await relay.client.readMailbox(ZHIWEI)).messages, []);
  });

  it("settles a leased message with its lease", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    const { messages } = await relay.client.lease(ZHIWEI);
    const [item] = messages;
    assert.ok(item !== undefined);
    assert.equal((await relay.run(["ack", ZHIWEI, item.message_id])).code, 1);
    const answer = await relay.json(["ack", ZHIWEI, item.message_id, "--lease-id", item.lease.id]);
    assert.equal(answer["acknowledged"], 1);
  });
});
