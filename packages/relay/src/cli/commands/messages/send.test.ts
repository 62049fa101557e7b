import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("send", () => {
  it("prints who will get it, and under which ids", async () => {
    await using relay = await openCliRelay();
    const stdout = await relay.ok([...HELLO, "--type", "request", "--needs-reply"]);
    assert.match(stdout, /^accepted for zhiwei@known-blocks1: msg_\S+\nthread thread_\S+ {2}task \S+\n$/);
  });

  it("carries every option in the message", async () => {
    await using relay = await openCliRelay();
    const about = ["--type", "request", "--urgency", "high", "--needs-reply", "--thread-id", "t-1"];
    const expires = new Date(Date.now() + 86_400_000).toISOString();
    const times = ["--deadline", "2h", "--expires", expires];
    const key = ["--idempotency-key", "k-1", "--idempotent"];
    const { message } = (await relay.json([...HELLO, ...about, ...times, ...key])) as {
      readonly message: Record<string, unknown>;
    };
    assert.equal(message["body"], "知微你好");
    assert.deepEqual(message["idempotency"], { duplicate_safety: "idempotent", key: "k-1" });
    assert.equal(message["thread_id"], "t-1");
    assert.equal(message["urgency"], "high");
    assert.equal(message["needs_reply"], true);
    assert.equal(message["expires_at"], expires);
    assert.ok(Math.abs(Number(message["deadline_ms"]) - Date.now() - 7_200_000) < 60_000);
  });

  it("reads the body from stdin", async () => {
    await using relay = await openCliRelay();
    await relay.ok(["send", "--from", LULU, "--to", ZHIWEI, "--body", "-"], { stdin: "第一行\n第二行\n" });
    const { messages } = await relay.client.readMailbox(ZHIWEI);
    assert.equal(messages[0]?.message.body, "第一行\n第二行");
  });

  it("says on stderr why the relay refused, and exits with 1", async () => {
    await using relay = await openCliRelay();
    const { code, stdout, stderr } = await relay.run([
      "send",
      "--from",
      LULU,
      "--to",
      "stranger",
      "--body",
      "x",
    ]);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^error: to: no agent is registered as "stranger".*\n {2}`a2a-relay agents` lists/);
  });

  it("names the candidates of an ambiguous recipient", async () => {
    await using relay = await openCliRelay();
    for (const id of ["a@x", "b@x"]) await relay.client.register({ agent_id: id, display_name: "twin" });
    const { code, stderr } = await relay.run(["send", "--from", LULU, "--to", "twin", "--body", "x"]);
    assert.equal(code, 1);
    assert.match(stderr, /a@x.*b@x/s);
  });
});
