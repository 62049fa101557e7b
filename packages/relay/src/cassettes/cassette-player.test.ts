import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCassette } from "./cassette-parser.ts";
import { CassettePlayer, matches, type MatchedMessage } from "./cassette-player.ts";

const messageOf = (body: string, more: Partial<MatchedMessage> = {}): MatchedMessage => ({
  type: "request",
  from: "lulu@kamac",
  subject: "",
  body,
  ...more,
});

/** Plays the messages and answers with the names of what was chosen. */
async function namesOf(
  script: string,
  messages: readonly string[],
): Promise<readonly (string | undefined)[]> {
  const player = new CassettePlayer(await parseCassette(`version: 1\n${script}`, "talk.yaml"));
  return messages.map((body, index) => player.choose(`task-${index}`, messageOf(body)).exchange?.name);
}

const ALIKE = `
exchanges:
  - { name: first, match: { text: 几点了? }, reply: [{ reply: 一点 }] }
  - { name: second, match: { text: 几点了? }, reply: [{ reply: 两点 }] }
  - { name: any, reply: [{ reply: 不知道 }] }
`;

describe("the player of a cassette", () => {
  it("lets exchanges for the same messages take turns in a loop, and none for others come in between", async () => {
    const asked = ["几点了?", "你好", "几点了?", "几点了?", "你好"];
    assert.deepEqual(await namesOf(`mode: loop${ALIKE}`, asked), ["first", "any", "second", "first", "any"]);
  });

  it("plays each exchange once where it is told to, in the order of the file", async () => {
    const asked = ["几点了?", "几点了?", "几点了?", "几点了?"];
    assert.deepEqual(await namesOf(`mode: once${ALIKE}`, asked), ["first", "second", "any", undefined]);
  });

  it("takes only the next one in an ordered cassette, and what does not fit uses nothing up", async () => {
    const asked = ["你好", "几点了?", "几点了?", "几点了?", "又来"];
    const names = await namesOf(`mode: ordered${ALIKE}`, asked);
    assert.deepEqual(names, [undefined, "first", "second", "any", undefined]);
  });

  it("gives a message that comes again the same answer", async () => {
    const player = new CassettePlayer(await parseCassette(`version: 1\nmode: once${ALIKE}`, "talk.yaml"));
    const names = ["a", "a", "b", "a"].map((key) => player.choose(key, messageOf("几点了?")).exchange?.name);
    assert.deepEqual(names, ["first", "first", "second", "first"]);
    assert.equal(player.isThrough, false);
    player.choose("c", messageOf("x"));
    assert.equal(player.isThrough, true);
  });
});

describe("a match", () => {
  const cases: readonly (readonly [match: string, message: MatchedMessage, expected: boolean])[] = [
    ["{}", messageOf("anything"), true],
    ["{}", messageOf("给你", { type: "handoff" }), true],
    ["{}", messageOf("a note", { type: "note" }), false],
    ["{ kind: note }", messageOf("a note", { type: "note" }), true],
    ["{ text: 你好 }", messageOf("你好\n"), true],
    ["{ text: 你好 }", messageOf("你好吗"), false],
    ["{ contains: 好 }", messageOf("你好吗"), true],
    ["{ contains: 好 }", messageOf("您"), false],
    ["{ regex: '^第\\d+章$' }", messageOf("第12章"), true],
    ["{ regex: '^第\\d+章$' }", messageOf("第十二章"), false],
    ["{ regex: '(?i:hello)' }", messageOf("well, HELLO"), true],
    ["{ regex: '^.$' }", messageOf("😀"), true],
    ["{ from: lulu@kamac }", messageOf("x"), true],
    ["{ from: mallory@x }", messageOf("x"), false],
    ["{ subject: 天气 }", messageOf("x", { subject: "天气" }), true],
    ["{ subject: 天气 }", messageOf("x"), false],
    ["{ text: x, from: mallory@x }", messageOf("x"), false],
  ];
  for (const [written, message, expected] of cases) {
    it(`${written} ${expected ? "holds" : "does not hold"} for ${message.type} ${message.body.trim()}`, async () => {
      const script = `version: 1\nexchanges:\n  - match: ${written}\n    reply: [{ reply: a }]\n`;
      const [exchange] = (await parseCassette(script, "talk.yaml")).exchanges;
      assert.ok(exchange);
      assert.equal(matches(exchange.match, message), expected);
    });
  }
});
