import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { padDisplay, truncateDisplay, visibleLine, visibleText, shellWords } from "./text.ts";

describe("padDisplay", () => {
  const widths: readonly (readonly [string, number])[] = [
    ["", 0],
    ["lulu", 4],
    ["知微你好", 8],
    ["ひらカナ", 8],
    ["ｶﾅ", 2],
    ["한글", 4],
    ["（全角）", 8],
    ["e\u0301", 1],
    ["👍", 2],
    ["👩‍👩‍👧", 2],
    ["❤️", 2],
    ["𠮷野家", 6],
    ["žluť", 4],
  ];
  for (const [text, width] of widths) {
    it(`counts ${width} cells for ${JSON.stringify(text)}`, () => {
      assert.equal(padDisplay(text, 10), text + " ".repeat(10 - width));
    });
  }

  it("counts cells, not characters", () => {
    assert.equal(padDisplay("知微", 6), "知微  ");
    assert.equal(padDisplay("lulu", 2), "lulu");
  });
});

describe("truncateDisplay", () => {
  it("leaves what fits", () => assert.equal(truncateDisplay("知微", 4), "知微"));
  it("never cuts through a wide character", () => {
    assert.equal(truncateDisplay("知微你好", 6), "知微…");
    assert.equal(truncateDisplay("知微你好", 7), "知微你…");
  });
});

describe("visibleLine", () => {
  it("shows what would steer the terminal", () => {
    assert.equal(visibleLine("a\u001b[31mred\u0007\r\n\u007f\u009b2J"), "a␛[31mred␇␍␊␡<U+009B>2J");
  });
  it("shows what reorders or hides text", () => {
    assert.equal(
      visibleLine("abc\u202edcb\u2066\u200b\u2028\u{e0041}"),
      "abc<U+202E>dcb<U+2066><U+200B><U+2028><U+E0041>",
    );
  });
  it("leaves honest text alone", () => {
    for (const text of ["知微你好", "👩‍👩‍👧", "می‌خواهم", "¿Qué?"]) assert.equal(visibleLine(text), text);
  });
  it("replaces half of a surrogate pair", () => assert.equal(visibleLine("a\ud800"), "a\ufffd"));
});

describe("visibleText", () => {
  it("keeps lines and tabs", () => assert.equal(visibleText("a\r\n\tb\u001b\nc"), "a\n\tb␛\nc"));
});

describe("shellWords", () => {
  it("leaves plain words as they are", () => {
    const words = ["a2a-relay", "a2a", "send", "知微@工作室", "https://a.example/x?y=1"];
    assert.equal(shellWords(words), "a2a-relay a2a send 知微@工作室 'https://a.example/x?y=1'");
  });

  it("quotes whatever a shell would act on, and shows what a terminal would", () => {
    assert.equal(shellWords(["$(id)", "it's", "", "a b", "\u001b[2J"]), `'$(id)' 'it'\\''s' '' 'a b' '␛[2J'`);
  });
});
