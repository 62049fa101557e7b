import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { CASSETTE_LIMITS, type Step } from "./cassette.ts";
import { loadCassette, parseCassette } from "./cassette-parser.ts";

const GUIDE = join(import.meta.dirname, "../../../../docs/guides/cassettes.md");

const exchange = (reply: string, match = ""): string =>
  `version: 1\nexchanges:\n  - ${match === "" ? "" : `match: ${match}\n    `}reply: ${reply}\n`;

async function stepsOf(reply: string): Promise<readonly Step[]> {
  return (await parseCassette(exchange(reply), "talk.yaml")).exchanges[0]?.steps ?? [];
}

describe("a cassette", () => {
  it("says whose it is, how it is played, and what answers what", async () => {
    const cassette = await parseCassette(
      `# 知微的台词
version: 1
agent: zhiwei@studio
mode: ordered
otherwise: ignore
exchanges:
  - name: greeting
    match: { text: 你好, from: lulu@laptop, subject: hi, kind: handoff }
    reply:
      - reply: |
          你好!
          我是知微。
`,
      "talk.yaml",
    );
    assert.deepEqual(cassette, {
      file: "talk.yaml",
      agent: "zhiwei@studio",
      mode: "ordered",
      otherwise: [{ act: "silence" }],
      exchanges: [
        {
          name: "greeting",
          line: 7,
          match: {
            kinds: ["handoff"],
            text: "你好",
            contains: undefined,
            regex: undefined,
            from: "lulu@laptop",
            subject: "hi",
          },
          steps: [
            { act: "reply", reply: { text: "你好!\n我是知微。\n", parts: undefined, isPartial: false } },
          ],
        },
      ],
    });
  });

  it("loops and fails what it does not know unless it says otherwise", async () => {
    const { mode, agent, otherwise } = await parseCassette("version: 1\nexchanges: []", "talk.yaml");
    assert.deepEqual([mode, agent], ["loop", undefined]);
    assert.deepEqual(otherwise, [{ act: "fail", reason: "the cassette has no answer to this" }]);
  });

  const steps: readonly (readonly [string, Step])[] = [
    ["{ status: 查一下 }", { act: "status", text: "查一下" }],
    ["{ status: }", { act: "status", text: undefined }],
    ["{ delay_ms: 250 }", { act: "delay", durationMs: 250 }],
    ["{ ask: 哪个? }", { act: "ask", text: "哪个?" }],
    ["{ auth: 登录 }", { act: "auth", text: "登录" }],
    ["{ ask: { parts: [{ text: 哪个? }] } }", { act: "ask", text: "哪个?", parts: [{ text: "哪个?" }] }],
    [
      "{ status: { text: 一半, data: 50 } }",
      { act: "status", text: "一半", parts: [{ kind: "data", data: 50 }] },
    ],
    ["{ crash: 2 }", { act: "crash", attempts: 2 }],
    [
      "{ artifact: { name: a, text: b } }",
      {
        act: "artifact",
        artifact: {
          id: "artifact-1",
          name: "a",
          description: undefined,
          append: false,
          chunks: [[{ kind: "text", text: "b" }]],
          lastChunk: true,
        },
      },
    ],
    [
      "{ artifact: { id: x, chunks: [一, { data: [1] }, { delay_ms: 20 }, { parts: [{ text: t }] }], last_chunk: false } }",
      {
        act: "artifact",
        artifact: {
          id: "x",
          name: undefined,
          description: undefined,
          append: false,
          chunks: [
            [{ kind: "text", text: "一" }],
            [{ kind: "data", data: [1] }],
            { durationMs: 20 },
            [{ text: "t" }],
          ],
          lastChunk: false,
        },
      },
    ],
  ];
  for (const [written, step] of steps) {
    it(`reads the step ${written}`, async () => {
      assert.deepEqual((await stepsOf(`[${written}, { silence: true }]`))[0], step);
    });
  }

  const endings: readonly (readonly [string, Step])[] = [
    ["{ reply: 好 }", { act: "reply", reply: { text: "好", parts: undefined, isPartial: false } }],
    [
      "{ reply: { data: { a: 1 }, partial: true } }",
      {
        act: "reply",
        reply: { text: undefined, parts: [{ kind: "data", data: { a: 1 } }], isPartial: true },
      },
    ],
    ["{ message: 直说 }", { act: "message", reply: { text: "直说", parts: undefined, isPartial: false } }],
    [
      "{ message: { parts: [{ text: 直说 }] } }",
      { act: "message", reply: { text: undefined, parts: [{ text: "直说" }], isPartial: false } },
    ],
    [
      "{ fail: { text: 坏了, data: { 码: 7 } } }",
      { act: "fail", reason: "坏了", parts: [{ kind: "data", data: { 码: 7 } }] },
    ],
    ["{ fail: 坏了 }", { act: "fail", reason: "坏了" }],
    ["{ reject: 不做 }", { act: "reject", reason: "不做" }],
    ["{ crash: true }", { act: "crash", attempts: Number.POSITIVE_INFINITY }],
    ["{ silence: true }", { act: "silence" }],
  ];
  for (const [written, step] of endings) {
    it(`reads the ending ${written}`, async () => assert.deepEqual(await stepsOf(`[${written}]`), [step]));
  }

  const mistakes: readonly (readonly [what: string, text: string, said: RegExp])[] = [
    ["broken YAML", "version: 1\nexchanges: [", /^talk\.yaml:2: this is not YAML: Flow sequence/],
    [
      "a member twice",
      "version: 1\nmode: loop\nmode: once\n",
      /^talk\.yaml:3: this is not YAML: Map keys must be/,
    ],
    ["a list", "- 1", /^talk\.yaml:1: expected a map with version, agent/],
    ["nothing", "", /^talk\.yaml:1: expected a map/],
    ["no version", "exchanges: []", /^talk\.yaml:1: expected version: 1, got/],
    ["a newer version", "version: 2\nexchanges: []", /^talk\.yaml:1: version: expected version: 1, got 2$/],
    ["no exchanges", "version: 1", /^talk\.yaml:1: expected a list of exchanges/],
    [
      "an unknown member",
      "version: 1\nexchange: []",
      /^talk\.yaml:2: exchange: unknown; known here are version/,
    ],
    [
      "an unknown mode",
      "version: 1\nmode: shuffle\nexchanges: []",
      /^talk\.yaml:2: mode: expected one of loop/,
    ],
    [
      "an id that is none",
      "version: 1\nagent: a b\nexchanges: []",
      /^talk\.yaml:2: agent: expected an agent id/,
    ],
    [
      "an exchange without an answer",
      "version: 1\nexchanges:\n  - match: { text: a }\n",
      /^talk\.yaml:3: exchanges\[1\]: expected the steps of the answer under reply$/,
    ],
    [
      "an answer that is no list",
      exchange("hi"),
      /^talk\.yaml:3: exchanges\[1\]\.reply: expected a list, got "hi"$/,
    ],
    ["an answer without an end", exchange("[{ status: a }]"), /reply: expected a last step that ends it/],
    ["no step at all", exchange("[]"), /reply: expected a last step that ends it/],
    ["a question at the end", exchange("[{ ask: a? }]"), /expected a step behind the last "ask"/],
    [
      "a step behind the end",
      exchange("[{ reply: a }, { status: b }]"),
      /reply\[2\]: comes behind the step that/,
    ],
    [
      "two steps in one",
      exchange("[{ status: a, reply: b }]"),
      /reply\[1\]: expected one of status, delay_ms/,
    ],
    ["an unknown step", exchange("[{ repyl: a }]"), /reply\[1\]\.repyl: unknown; known here are status/],
    [
      "a number as text",
      exchange("[{ reply: 42 }]"),
      /reply\[1\]\.reply: expected a text; put it in quotes, got 42$/,
    ],
    [
      "a number to match",
      exchange("[{ reply: a }]", "{ text: 42 }"),
      /match\.text: expected a text; put it in quotes/,
    ],
    [
      "a negative delay",
      exchange("[{ delay_ms: -1 }, { reply: a }]"),
      /delay_ms: expected a whole number from 0 to/,
    ],
    ["an empty reason", exchange("[{ fail: ' ' }]"), /fail: expected a text that is not empty/],
    [
      "an empty answer",
      exchange("[{ reply: {} }]"),
      /reply\[1\]\.reply: expected a text, or a map with text/,
    ],
    [
      "an artifact of nothing",
      exchange("[{ artifact: { name: a } }, { reply: b }]"),
      /expected exactly one of text/,
    ],
    [
      "a piece of an artifact without a name for it",
      exchange("[{ artifact: { append: true, text: b } }, { reply: c }]"),
      /artifact: expected the id of the artifact that it is added to/,
    ],
    [
      "a piece of an artifact that was never begun",
      exchange("[{ artifact: { id: 诗, append: true, text: b } }, { reply: c }]"),
      /reply\[1\]: no step before it has the artifact "诗"/,
    ],
    [
      "a delay behind the last chunk",
      exchange("[{ artifact: { chunks: [a, { delay_ms: 1 }] } }, { reply: b }]"),
      /chunks: expected a chunk behind the last delay_ms/,
    ],
    [
      "a delay and a chunk in one",
      exchange("[{ artifact: { chunks: [{ text: a, delay_ms: 1 }] } }, { reply: b }]"),
      /chunks\[1\]: expected exactly one of text, data, parts and delay_ms/,
    ],
    [
      "a question of nothing",
      exchange("[{ ask: {} }, { reply: a }]"),
      /ask: expected a text, or a map with text, data or parts/,
    ],
    ["a part that is none", exchange("[{ reply: { parts: [1] } }]"), /parts\[1\]: expected a part, such as/],
    [
      "a broken pattern",
      exchange("[{ reply: a }]", "{ regex: '(' }"),
      /match\.regex: expected a regular expression/,
    ],
    [
      "a pattern that is too long",
      exchange("[{ reply: a }]", `{ regex: ${"a".repeat(CASSETTE_LIMITS.regexCharsMax + 1)} }`),
      /match\.regex: has 1001 characters, at most 1000 are read/,
    ],
    ["an unknown kind", exchange("[{ reply: a }]", "{ kind: message }"), /match\.kind: expected one of note/],
    [
      "tasks and other messages in one",
      exchange("[{ reply: a }]", "{ kind: [note, request] }"),
      /request and handoff are tasks/,
    ],
    [
      "a question to a note",
      exchange("[{ ask: a? }, { reply: a }]", "{ kind: note }"),
      /reply\[1\]: "ask" is for tasks/,
    ],
    [
      "counted crashes of a note",
      exchange("[{ crash: 1 }]", "{ kind: note }"),
      /reply\[1\]: expected crash: true/,
    ],
    [
      "crashes for ever and on",
      exchange("[{ crash: 99 }, { reply: a }]"),
      /crash: expected a whole number from 1/,
    ],
    [
      "otherwise something",
      "version: 1\nexchanges: []\notherwise: panic",
      /^talk\.yaml:3: otherwise: expected fail/,
    ],
  ];
  for (const [what, text, said] of mistakes) {
    it(`is refused with file, line and what was expected: ${what}`, async () => {
      await assert.rejects(parseCassette(text, "talk.yaml"), (reason: unknown) => {
        assert.ok(reason instanceof RelayError);
        assert.equal(reason.code, "invalid_argument");
        assert.match(reason.message, said);
        assert.match(reason.message, /^talk\.yaml:\d+: /);
        return true;
      });
    });
  }

  it("is refused when its aliases expand to too much", async () => {
    const bomb = Array.from(
      { length: 12 },
      (_, level) => `  - &a${level} [${`*a${level - 1}, `.repeat(9)}x]`,
    );
    bomb[0] = "  - &a0 [x]";
    await assert.rejects(
      parseCassette(`version: 1\nexchanges:\n${bomb.join("\n")}\n`, "talk.yaml"),
      /not usable YAML/,
    );
  });

  it("is playable as the guide prints it", async () => {
    const guide = await readFile(GUIDE, "utf8");
    const scripts = [...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match) => match[1] ?? "");
    const [whole = "", ...pieces] = scripts;
    const { agent, exchanges } = await parseCassette(whole, "zhiwei.yaml");
    assert.deepEqual(
      [agent, exchanges.map(({ name }) => name)],
      ["zhiwei@studio", ["greeting", "report", "money"]],
    );
    assert.equal(pieces.length, 1);
    const indented = pieces.map((piece) => piece.replaceAll(/^/gm, "      "));
    for (const piece of indented)
      await parseCassette(exchange(`\n${piece.trimEnd()}\n      - reply: 好`), "steps.yaml");
  });

  it("is read from a file, and a missing or huge one is said to be so", async () => {
    const folder = await mkdtemp(join(tmpdir(), "cassette-"));
    try {
      const path = join(folder, "知微.yaml");
      await assert.rejects(loadCassette(path), /知微\.yaml: the cassette cannot be read: ENOENT/);
      await writeFile(path, exchange("[{ reply: 好 }]"));
      assert.equal((await loadCassette(path)).file, path);
      await writeFile(path, "#".repeat(CASSETTE_LIMITS.fileBytesMax + 1));
      await assert.rejects(loadCassette(path), { code: "too_large" });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
