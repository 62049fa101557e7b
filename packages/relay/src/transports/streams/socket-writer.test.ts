import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { activeTimers } from "../../../testing/active-timers.ts";
import { openPair } from "../../../testing/socket-pair.ts";
import { SocketWriter } from "./socket-writer.ts";

const STALL_MS = 60_000;
const NOBODY = { onLeft: () => undefined, onStall: () => undefined };

describe("what is sent over a socket", () => {
  it("is waited for until it has left", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NOBODY);
    const arrived = once(pair.theirs, "message");
    assert.equal(await writer.send("知微你好"), true);
    assert.equal(String((await arrived)[0]), "知微你好");
    writer.stop();
  });

  it("to a socket that has closed leaves nothing behind that would keep a process alive", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NOBODY);
    pair.theirs.terminate();
    await once(pair.ours, "close");
    writer.stop();
    const before = activeTimers();
    assert.equal(await writer.send("too late"), false);
    assert.equal(activeTimers(), before);
  });

  it("and is a ping holds no timer", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NOBODY);
    const before = activeTimers();
    const arrived = once(pair.theirs, "ping");
    writer.ping();
    await arrived;
    const held = activeTimers() - before;
    writer.stop();
    assert.equal(held, 0);
  });
});
