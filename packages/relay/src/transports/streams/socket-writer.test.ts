import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { activeTimers } from "../../../testing/active-timers.ts";
import { openPair } from "../../../testing/socket-pair.ts";
import { SocketWriter } from "./socket-writer.ts";

const STALL_MS = 60_000;
const NO_LISTENER = { onLeft: () => undefined, onStall: () => undefined };

describe("a socket writer", () => {
  it("resolves when the frame has left", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NO_LISTENER);
    const arrived = once(pair.theirs, "message");
    assert.equal(await writer.send("知微你好"), true);
    assert.equal(String((await arrived)[0]), "知微你好");
    writer.stop();
  });

  it("keeps no timer for a socket that has closed", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NO_LISTENER);
    pair.theirs.terminate();
    await once(pair.ours, "close");
    writer.stop();
    const before = activeTimers();
    assert.equal(await writer.send("too late"), false);
    assert.equal(activeTimers(), before);
  });

  it("keeps no timer for a ping", async () => {
    await using pair = await openPair();
    const writer = new SocketWriter(pair.ours, STALL_MS, NO_LISTENER);
    const before = activeTimers();
    const arrived = once(pair.theirs, "ping");
    writer.ping();
    await arrived;
    const held = activeTimers() - before;
    writer.stop();
    assert.equal(held, 0);
  });
});
