import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part } from "../model/part.ts";
import { fromProtoPart, toKindPart, toProtoPart, toTypePart, toV1Part } from "./part-dialect.ts";

/** The same parts in 1.0, in 0.2 and 0.3, in 0.1, and in the JSON of 0.3's protocol buffers. */
const FORMS: readonly (readonly [string, Part, Part, Part, Part])[] = [
  [
    "text",
    { text: "知微", metadata: { lang: "zh" } },
    { kind: "text", text: "知微", metadata: { lang: "zh" } },
    { type: "text", text: "知微", metadata: { lang: "zh" } },
    { text: "知微", metadata: { lang: "zh" } },
  ],
  [
    "a file with its bytes",
    { raw: "5L2g5aW9", filename: "信.txt", mediaType: "text/plain" },
    { kind: "file", file: { name: "信.txt", mimeType: "text/plain", bytes: "5L2g5aW9" } },
    { type: "file", file: { name: "信.txt", mimeType: "text/plain", bytes: "5L2g5aW9" } },
    { file: { name: "信.txt", mimeType: "text/plain", fileWithBytes: "5L2g5aW9" } },
  ],
  [
    "a file at an address",
    { url: "https://a.example/x", "x-own": [1] },
    { kind: "file", file: { uri: "https://a.example/x" }, "x-own": [1] },
    { type: "file", file: { uri: "https://a.example/x" }, "x-own": [1] },
    { file: { fileWithUri: "https://a.example/x" }, "x-own": [1] },
  ],
  [
    "data",
    { data: { text: "信" } },
    { kind: "data", data: { text: "信" } },
    { type: "data", data: { text: "信" } },
    { data: { data: { text: "信" } } },
  ],
  [
    "data that is null",
    { data: null, metadata: { a: 1 } },
    { kind: "data", data: { value: null }, metadata: { a: 1, data_part_compat: true } },
    { type: "data", data: { value: null }, metadata: { a: 1, data_part_compat: true } },
    { data: { data: { value: null } }, metadata: { a: 1, data_part_compat: true } },
  ],
];

describe("a part", () => {
  for (const [what, v1, kind, type, proto] of FORMS) {
    it(`with ${what} is written in every form, whatever form it has`, () => {
      for (const part of [v1, kind, type]) {
        assert.deepEqual(toV1Part(part), v1);
        assert.deepEqual(toKindPart(part), kind);
        assert.deepEqual(toTypePart(part), type);
        assert.deepEqual(toProtoPart(part), proto);
      }
    });

    it(`with ${what} is read from protocol buffers, where other forms are taken too`, () => {
      for (const part of [proto, kind, type]) assert.deepEqual(fromProtoPart(part), v1);
    });
  }

  it("with a tag says itself how deep its data lies", () => {
    const data = { data: { 名: 1 } };
    assert.deepEqual(fromProtoPart({ kind: "data", data }), { data });
    assert.deepEqual(fromProtoPart({ data }), data);
  });

  it("may have names in snake_case", () => {
    const written = { raw: "AA==", media_type: "image/png", file_name: "图.png" };
    assert.deepEqual(toV1Part(written), { raw: "AA==", mediaType: "image/png", filename: "图.png" });
    const file = { file: { file_with_uri: "https://a.example", mime_type: "image/png" } };
    assert.deepEqual(toV1Part(file), { url: "https://a.example", mediaType: "image/png" });
  });

  it("keeps unknown members of its file, there and back", () => {
    const kind = { kind: "file", file: { uri: "https://a.example", size: 12 }, metadata: { a: 1 } };
    assert.deepEqual(toKindPart(toV1Part(kind)), kind);
    assert.deepEqual(toV1Part(kind), { url: "https://a.example", metadata: { a: 1 }, file: { size: 12 } });
  });

  it("keeps the name and the media type of a text, which older dialects do not have", () => {
    const part = { text: "# 信", mediaType: "text/markdown", filename: "信.md" };
    assert.deepEqual(toKindPart(part), { kind: "text", ...part });
    assert.deepEqual(toV1Part(toKindPart(part)), part);
  });

  it("is carried as it is where it is of no known kind", () => {
    for (const part of [
      { kind: "form", fields: [] },
      { kind: "file", file: { name: "x" } },
      { kind: "data" },
      {},
    ]) {
      for (const to of [toV1Part, toKindPart, toTypePart, toProtoPart]) assert.deepEqual(to(part), part);
    }
  });

  it("keeps a tag of another meaning", () => {
    assert.deepEqual(toV1Part({ kind: "text", text: "a", type: "greeting" }), {
      text: "a",
      type: "greeting",
    });
    assert.deepEqual(toKindPart({ text: "a", type: "greeting" }), {
      kind: "text",
      text: "a",
      type: "greeting",
    });
  });
});
