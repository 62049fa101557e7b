import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { textLines } from "./text-lines.ts";

async function linesOf(...chunks: readonly Uint8Array[]): Promise<readonly (readonly [string, boolean])[]> {
  async function* given(): AsyncGenerator<Uint8Array, void, void> {
    yield* chunks;
  }
  const lines: (readonly [string, boolean])[] = [];
  for await (const { text, ended } of textLines(given())) lines.push([text, ended]);
  return lines;
}

describe("the lines of a text", () => {
  it("say whether they were ended", async () => {
    assert.deepEqual(await linesOf(Buffer.from("一\n二")), [
      ["一", true],
      ["二", false],
    ]);
    assert.deepEqual(await linesOf(Buffer.from("\n\n")), [
      ["", true],
      ["", true],
    ]);
    assert.deepEqual(await linesOf(), []);
  });

  it("are ended by LF alone: JSON may hold whatever else breaks lines", async () => {
    const text = "a\rb\u2028c\u2029d\u0085e";
    assert.deepEqual(await linesOf(Buffer.from(`${text}\n`)), [[text, true]]);
  });

  it("are the same wherever the bytes were cut", async () => {
    const texts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 7 }), async (parts, size) => {
        const text = parts.join("\n");
        const bytes = Buffer.from(text);
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        const lines = await linesOf(...chunks);
        const joined = lines.map(([line, ended]) => (ended ? `${line}\n` : line)).join("");
        assert.equal(joined, text.toWellFormed());
      }),
    );
  });

  it("without an end are refused before they fill the memory", async () => {
    const chunks = Array.from({ length: 17 }, () => Buffer.alloc(1024 * 1024, "x"));
    await assert.rejects(linesOf(...chunks), /a line has more than/);
  });
});
