import assert from "node:assert/strict";
import { PassThrough, Readable } from "node:stream";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import type { CliIo } from "../terminal/output.ts";
import { readTextOption } from "./input.ts";

function io(stdin: Readable, signal = new AbortController().signal): CliIo {
  return {
    stdin,
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    workingDirectory: ".",
    signal,
  };
}

describe("readTextOption", () => {
  it("takes the option's own text", async () => {
    assert.equal(await readTextOption("--", io(Readable.from([]))), "--");
  });

  it("reads stdin for a dash, over characters that are cut in two", async () => {
    const bytes = Buffer.from("知微你好\nsecond\n\n");
    const stdin = Readable.from([bytes.subarray(0, 4), bytes.subarray(4)]);
    assert.equal(await readTextOption("-", io(stdin)), "知微你好\nsecond\n");
  });

  it("refuses what is no text", async () => {
    await assert.rejects(readTextOption("-", io(Readable.from([Buffer.from([0xff, 0xfe])]))), /not UTF-8/);
  });

  it("refuses more than a message can hold, without reading on", async () => {
    let chunks = 0;
    const endless = Readable.from(
      (function* bytes() {
        for (;;) {
          chunks += 1;
          yield Buffer.alloc(64 * 1024);
        }
      })(),
    );
    await assert.rejects(readTextOption("-", io(endless)), { code: "too_large" });
    assert.ok(chunks * 64 * 1024 < 2 * LIMITS.bodyBytesMax);
  });

  it("stops waiting for input when it is interrupted", async () => {
    const ending = new AbortController();
    const reading = readTextOption("-", io(new PassThrough(), ending.signal));
    ending.abort();
    await assert.rejects(reading);
  });
});
