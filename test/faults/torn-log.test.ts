import assert from "node:assert/strict";
import { appendFile, open, readFile, stat, truncate } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { assertKept, assertVerifies, type CreatedMessage, createMessage, readAll } from "./messages.ts";
import { type StoppedRelay, stoppedRelay } from "./stopped-relay.ts";

const MESSAGES = 40;
/** SQLite's write-ahead log: a header, then frames of a header and a page each. */
const LOG_HEADER_BYTES = 32;
const FRAME_BYTES = 24 + 4_096;

describe("a relay that was killed and whose write-ahead log is torn", { timeout: 60_000 }, () => {
  const messages: CreatedMessage[] = [];
  let stopped: StoppedRelay;

  before(async () => {
    stopped = await stoppedRelay("SIGKILL", async (url) => {
      for (let count = 0; count < MESSAGES; count += 1)
        messages.push(await createMessage(url, `第 ${count} 封信`));
    });
  });
  after(() => stopped[Symbol.asyncDispose]());

  it("keeps everything it answered when garbage follows the log", async () => {
    await using relay = await stopped.startAfter(({ log }) => appendFile(log, Buffer.alloc(10_000, 0xa5)));
    await assertWhole(relay.url);
  });

  it("keeps everything it answered when half a frame follows the log", async () => {
    await using relay = await stopped.startAfter(async ({ log }) => {
      const bytes = await readFile(log);
      await appendFile(log, bytes.subarray(-FRAME_BYTES, -FRAME_BYTES / 2));
    });
    await assertWhole(relay.url);
  });

  it("keeps everything it answered when a frame without its commit follows the log", async () => {
    await using relay = await stopped.startAfter(async ({ log }) => {
      const bytes = await readFile(log);
      await appendFile(log, bytes.subarray(LOG_HEADER_BYTES, LOG_HEADER_BYTES + FRAME_BYTES));
    });
    await assertWhole(relay.url);
  });

  for (const frames of [1, 7, 30]) {
    it(`opens with an unbroken prefix of its messages when the log is cut ${frames} frames from its end`, async () => {
      await using relay = await stopped.startAfter(async ({ log }) => {
        await truncate(log, (await stat(log)).size - frames * FRAME_BYTES + 100);
      });
      await assertBeginning(relay.url);
    });
  }

  it("opens with an unbroken prefix of its messages when a bit of the log has flipped", async () => {
    await using relay = await stopped.startAfter(async ({ log }) => {
      const position = (await stat(log)).size - 10 * FRAME_BYTES + 200;
      await using file = await open(log, "r+");
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, position);
      byte.writeUInt8(byte.readUInt8() ^ 1);
      await file.write(byte, 0, 1, position);
    });
    await assertBeginning(relay.url);
  });

  async function assertWhole(url: string): Promise<void> {
    await assertKept(url, messages);
    assert.deepEqual(
      (await readAll(url)).map((item) => item.message_id),
      messages.map((message) => message.messageId),
    );
    await assertVerifies(url);
  }

  /** What was cut off is gone; what is left is whole, in order, and can be added to. */
  async function assertBeginning(url: string): Promise<void> {
    const ids = (await readAll(url)).map((item) => item.message_id);
    assert.ok(ids.length > 0 && ids.length < messages.length, `${ids.length} messages are left`);
    const left = messages.slice(0, ids.length);
    assert.deepEqual(
      ids,
      left.map((message) => message.messageId),
    );
    await assertKept(url, left);
    await assertVerifies(url);
    await assertKept(url, [await createMessage(url, "written after the damage")]);
    await assertVerifies(url);
  }
});
