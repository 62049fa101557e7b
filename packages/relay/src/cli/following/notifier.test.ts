import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { PassThrough, Readable } from "node:stream";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../testing/cli-relay.ts";
import { CommandContext } from "../command-line/command-context.ts";
import { createKeepTrying } from "./keep-trying.ts";
import { Notifier } from "./notifier.ts";

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

describe("Notifier", () => {
  it("counts a notice that came before the worker waits for it", async () => {
    await using relay = await openCliRelay();
    const context = contextOf(relay.url);
    const options = { agent: ZHIWEI, waitMs: 1_000, keepTrying: createKeepTrying(context) };
    using notifier = new Notifier(context, options);
    const message = { from: LULU, to: ZHIWEI, body: "知微你好" };
    await relay.client.send(message);
    await notifier.noticeAfter(0);
    assert.equal(notifier.notices, 1);
    await relay.client.send(message);
    while (notifier.notices === 1) await new Promise((resolve) => setImmediate(resolve));
    await notifier.noticeAfter(1);
  });

  it("ends with the interrupt, and with the error of the relay about an unknown agent", async () => {
    await using relay = await openCliRelay();
    const ending = new AbortController();
    const context = contextOf(relay.url, ending.signal);
    const keepTrying = createKeepTrying(context);
    using unknown = new Notifier(context, { agent: "stranger@x", waitMs: 1_000, keepTrying });
    await assert.rejects(unknown.noticeAfter(0), { code: "unknown_agent" });
    using notifier = new Notifier(context, { agent: ZHIWEI, waitMs: 1_000, keepTrying });
    const waiting = notifier.noticeAfter(0);
    ending.abort(new Error("interrupted"));
    await assert.rejects(waiting, /interrupted/);
  });
});
