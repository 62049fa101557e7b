import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../testing/cli-relay.ts";
import { CommandContext } from "../command-line/command-context.ts";
import { createKeepTrying } from "./keep-trying.ts";
import { MailBell } from "./notifier.ts";

function contextOf(relay: string, signal = new AbortController().signal): CommandContext {
  const io = {
    stdin: Readable.from([]),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    workingDirectory: tmpdir(),
    signal,
  };
  return new CommandContext(io, { relay, json: false, color: false });
}

describe("the bell of a mailbox", () => {
  it("is not missed when it rings before somebody waits for it", async () => {
    await using relay = await openCliRelay();
    const context = contextOf(relay.url);
    const options = { agent: ZHIWEI, waitMs: 1_000, keepTrying: createKeepTrying(context) };
    using bell = new MailBell(context, options);
    const message = { from: LULU, to: ZHIWEI, body: "知微你好" };
    await relay.client.send(message);
    await bell.rung(0);
    assert.equal(bell.rings, 1);
    await relay.client.send(message);
    while (bell.rings === 1) await new Promise((resolve) => setImmediate(resolve));
    await bell.rung(1);
  });

  it("ends with the interrupt, and with what the relay says about an agent that nobody knows", async () => {
    await using relay = await openCliRelay();
    const ending = new AbortController();
    const context = contextOf(relay.url, ending.signal);
    const keepTrying = createKeepTrying(context);
    using unknown = new MailBell(context, { agent: "nobody@x", waitMs: 1_000, keepTrying });
    await assert.rejects(unknown.rung(0), { code: "unknown_agent" });
    using bell = new MailBell(context, { agent: ZHIWEI, waitMs: 1_000, keepTrying });
    const waiting = bell.rung(0);
    ending.abort(new Error("interrupted"));
    await assert.rejects(waiting, /interrupted/);
  });
});
