import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("poll", () => {
  it("prints bodies and leaves the messages until it is told to acknowledge", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    assert.match(await relay.ok(["poll", "--agent", ZHIWEI]), /\nhello\n.*\n {2}知微你好\n/);
    assert.match(await relay.ok(["poll", "--agent", ZHIWEI, "--ack"]), /知微你好/);
    assert.equal(await relay.ok(["poll", "--agent", ZHIWEI, "--ack"]), "no open messages\n");
  });

  it("takes only what is allowed, also from behind what is not", async () => {
    await using relay = await openCliRelay();
    await relay.client.register({ agent_id: "mallory@x" });
    for (let count = 0; count < 3; count += 1) {
      await relay.ok(["send", "--from", "mallory@x", "--to", ZHIWEI, "--body", "spam"]);
    }
    await relay.ok([...HELLO, "--type", "alert"]);
    await relay.ok(HELLO);
    const filter = ["--allow-from", "lulu", "--allowed-type", "note", "--allowed-type", "reply"];
    const answer = await relay.json(["poll", "--agent", ZHIWEI, "--limit", "2", "--ack", ...filter]);
    assert.equal(answer["count"], 1);
    const { messages } = await relay.client.readMailbox(ZHIWEI);
    assert.deepEqual(
      messages.map(({ message }) => `${message.from} ${message.type}`),
      ["mallory@x note", "mallory@x note", "mallory@x note", "lulu@kamac alert"],
    );
  });

  it("takes nothing when an allowed sender does not exist", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    const { code } = await relay.run(["poll", "--agent", ZHIWEI, "--ack", "--allow-from", "lulu@typo"]);
    assert.equal(code, 1);
    assert.equal((await relay.client.readMailbox(ZHIWEI, { peek: true })).messages[0]?.status, "PENDING");
  });

  it("waits for messages when asked to", async () => {
    await using relay = await openCliRelay();
    const polled = relay.json(["poll", "--agent", ZHIWEI, "--wait", "20s"]);
    await relay.ok(HELLO);
    assert.equal((await polled)["count"], 1);
  });

  it("lets no message steer the terminal", async () => {
    await using relay = await openCliRelay();
    const body = "\u001b]0;owned\u0007\u001b[2J";
    await relay.client.send({ from: LULU, to: ZHIWEI, subject: "a\u001b[31m", body });
    for (const command of ["poll", "inbox"]) {
      const stdout = await relay.ok([command, "--agent", ZHIWEI, "--no-color"], { columns: 200 });
      assert.ok(!stdout.includes("\u001b"), stdout);
    }
  });
});
