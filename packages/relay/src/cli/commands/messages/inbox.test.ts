import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("inbox and pending", () => {
  it("list messages without marking them", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    for (const command of ["inbox", "pending"]) {
      const stdout = await relay.ok([command, "--agent", "zhiwei"]);
      assert.match(
        stdout,
        /^ID +AGE +FROM +TYPE +STATUS +SUBJECT\nmsg_\S+ +\S+ +lulu@kamac +note +pending +hello\n$/,
      );
    }
    const { messages } = await relay.client.readMailbox(ZHIWEI, { peek: true });
    assert.equal(messages[0]?.status, "PENDING");
  });

  it("say when there are none", async () => {
    await using relay = await openCliRelay();
    assert.equal(await relay.ok(["inbox", "--agent", ZHIWEI]), "no open messages\n");
    assert.deepEqual((await relay.json(["inbox", "--agent", ZHIWEI]))["messages"], []);
  });
});
