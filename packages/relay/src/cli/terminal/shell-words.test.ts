import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { shellWords } from "./shell-words.ts";

describe("shellWords", () => {
  it("leaves plain words as they are", () => {
    const words = ["a2a-relay", "a2a", "send", "知微@工作室", "https://a.example/x?y=1"];
    assert.equal(shellWords(words), "a2a-relay a2a send 知微@工作室 'https://a.example/x?y=1'");
  });

  it("quotes whatever a shell would act on, and shows what a terminal would", () => {
    assert.equal(shellWords(["$(id)", "it's", "", "a b", "\u001b[2J"]), `'$(id)' 'it'\\''s' '' 'a b' '␛[2J'`);
  });
});
