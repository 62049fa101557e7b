import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { refused } from "../../../testing/refusal.ts";
import { parseJson, readBody } from "./read-body.ts";

function streamOf(...chunks: readonly (string | Buffer)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
}

const readJson = (stream: Readable, bytesMax: number): Promise<unknown> =>
  readBody(stream, bytesMax, parseJson);

describe("reading a body", () => {
  it("gives the JSON, whole or in pieces, even where a character is cut in two", async () => {
    const text = JSON.stringify({ body: "知微你好🦊" });
    assert.deepEqual(await readJson(streamOf(text), 1_000), JSON.parse(text));
    const bytes = Buffer.from(text);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
      assert.deepEqual(await readJson(streamOf(...pieces), 1_000), JSON.parse(text));
    }
  });

  it("of nothing is nothing", async () => {
    assert.equal(await readJson(streamOf(), 1_000), undefined);
  });

  it("takes exactly as many bytes as allowed", async () => {
    assert.equal(await readJson(streamOf('"12345678"'), 10), "12345678");
    await refused(readJson(streamOf('"123456789"'), 10), "too_large", /10 bytes/);
    assert.equal(await readJson(streamOf('"知"'), 5), "知");
    await refused(readJson(streamOf('"知"'), 4), "too_large");
  });

  it("reads to the end of what is too large before it says so", async () => {
    const stream = new PassThrough();
    const reading = readJson(stream, 10);
    let isSettled = false;
    const settled = reading.catch(() => {
      isSettled = true;
    });
    stream.write("x".repeat(1_000));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isSettled, false);
    stream.end("x".repeat(1_000));
    await settled;
    assert.equal(stream.readableEnded, true);
  });

  it("does not read for ever", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    let sent = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        sent += chunk.length;
        yield chunk;
      }
    }
    const stream = Readable.from(endless());
    await refused(readJson(stream, 10), "too_large");
    assert.ok(sent <= LIMITS.drainBytesMax + 20 * chunk.length, `${sent}`);
    stream.destroy();
  });

  it("says that it is not UTF-8, or not JSON, and how", async () => {
    await refused(readJson(streamOf(Buffer.from([0x22, 0xff, 0x22])), 10), "invalid_argument", /UTF-8/);
    await refused(readJson(streamOf("{"), 10), "invalid_argument", /^body: is not valid JSON: /);
    const long = await refused(readJson(streamOf("x".repeat(5_000)), 10_000), "invalid_argument");
    assert.ok(long.message.length < 300);
  });

  it("says that the connection broke", async () => {
    const stream = new PassThrough();
    const reading = readJson(stream, 10);
    stream.write("{");
    stream.destroy(new Error("ECONNRESET"));
    await refused(reading, "invalid_argument", /connection broke/);
  });
});
