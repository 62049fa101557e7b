import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { textOfParts } from "./part.ts";

describe("textOfParts", () => {
  it("joins the text parts of every dialect and leaves out the rest", () => {
    const parts = [
      { kind: "text", text: "知微" },
      { type: "text", text: "你好" },
      { text: "plain" },
      { kind: "file", file: { uri: "https://a.example/x" } },
      { data: { text: "not this one" } },
      { text: 7 },
    ];
    assert.equal(textOfParts(parts), "知微\n你好\nplain");
    assert.equal(textOfParts([]), "");
  });
});
