import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("wait", () => {
  it("exits with 0 as soon as a message is open", async () => {
    await using relay = await openCliRelay();
    const waiting = relay.ok(["wait", "--agent", "zhiwei", "--timeout", "20s"]);
    await relay.ok(HELLO);
    assert.equal(await waiting, "message for zhiwei: note from lulu@kamac: hello\n");
  });

  it("exits with 3 when the time is over", async () => {
    await using relay = await openCliRelay();
    const { code, stdout } = await relay.run(["wait", "--agent", ZHIWEI, "--timeout", "10ms", "--json"]);
    assert.equal(code, 3);
    assert.deepEqual(JSON.parse(stdout), { mail: false, count: 0, cursor: "0" });
  });
});
