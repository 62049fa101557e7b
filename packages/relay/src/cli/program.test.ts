import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { describe, it } from "node:test";
import type { Command } from "commander";
import { cliRun } from "../../testing/cli-run.ts";
import { CommandLine } from "./command-line/command-line.ts";
import { EXIT } from "./command-line/exit.ts";
import { addCommands } from "./program.ts";

/** No relay listens here: port 1 needs privileges. */
const NO_RELAY = "http://127.0.0.1:1";

const GLOBAL_FLAGS = new Set(["--relay", "--api-key", "--json", "--no-color"]);

function allCommands(): readonly Command[] {
  const line = new CommandLine({
    stdin: Readable.from([]),
    stdout: new Writable(),
    stderr: new Writable(),
    env: {},
    workingDirectory: ".",
    signal: new AbortController().signal,
  });
  addCommands(line);
  const withChildren = (command: Command): readonly Command[] => [
    command,
    ...command.commands.flatMap(withChildren),
  ];
  return line.program.commands.flatMap(withChildren);
}

describe("docs/reference/cli.md", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../../docs/reference/cli.md"), "utf8");
  const sections = new Map(
    page.split(/\n(?=##)/).map((section) => [/^### `([a-z0-9 -]+[a-z])/.exec(section)?.[1] ?? "", section]),
  );
  const commands = allCommands().map((command) => {
    const names = [command.name()];
    for (let { parent } = command; parent !== null; { parent } = parent) names.unshift(parent.name());
    return { name: names.join(" "), command };
  });

  it("has a section for every command, and no other", () => {
    const documented = [...sections.keys()].filter((name) => name !== "");
    assert.deepEqual(documented.toSorted(), commands.map(({ name }) => name).toSorted());
  });

  it("explains every option", () => {
    for (const { name, command } of commands) {
      if (name === "a2a-relay serve" || name === "a2a-relay config") continue;
      for (const { long } of command.options) {
        const text = GLOBAL_FLAGS.has(long ?? "") ? page : sections.get(name);
        assert.ok(text?.includes(`\`${long}`), `${name} ${long}`);
      }
    }
  });

  it("explains every exit code", () => {
    const codes = [...page.matchAll(/^\| +(\d+) \|/gm)].map(([, code]) => Number(code));
    assert.deepEqual(codes, Object.values(EXIT));
  });
});

describe("runCli", () => {
  it("prints the version", async () => {
    const { code, stdout } = await cliRun(["--version"]);
    assert.equal(code, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });

  it("ends every help text with an example", () => {
    for (const command of allCommands()) {
      let help = "";
      command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
      assert.match(help, /\nExamples?:\n( {2}(\S.*)?\$ .+|\n| {2}\$ .+)+$/, command.name());
      assert.match(help, /a2a-relay/, command.name());
    }
  });

  it("offers the global options with every command", () => {
    for (const command of allCommands()) {
      const flags = new Set(command.options.map((option) => option.long));
      for (const flag of GLOBAL_FLAGS) assert.ok(flags.has(flag), command.name());
    }
  });

  const mistakes: readonly (readonly [string, readonly string[], RegExp])[] = [
    ["no command", [], /Usage: a2a-relay/],
    ["an unknown command", ["sned"], /^error: unknown command 'sned'\n\(Did you mean send\?\)/],
    ["an unknown option", ["status", "--lmit", "1"], /unknown option '--lmit'/],
    [
      "a missing option",
      ["send", "--from", "a", "--to", "b"],
      /required option '--body <text>' not specified/,
    ],
    [
      "a wrong type",
      ["send", "--from", "a", "--to", "b", "--body", "c", "--type", "message"],
      /Allowed choices are note/,
    ],
    ["a wrong duration", ["wait", "--agent", "a", "--timeout", "soon"], /Expected a duration such as/],
    [
      "a wrong relay address",
      ["status", "--relay", "localhost:8080"],
      /--relay "localhost:8080": expected an http/,
    ],
    ["a program without --exec", ["watch", "--agent", "a", "--", "ls"], /"ls" is not run without --exec/],
    ["--exec without a program", ["watch", "--agent", "a", "--exec"], /--exec needs a program/],
    [
      "an unknown posture",
      ["requeue", "m", "--reason", "r", "--duplicate-risk", "yolo"],
      /Allowed choices are idempotent/,
    ],
    [
      "--idempotent without a key",
      ["send", "--from", "a", "--to", "b", "--body", "c", "--idempotent"],
      /needs --idempotency-key/,
    ],
  ];
  for (const [what, argv, expected] of mistakes) {
    it(`exits with 2 after ${what}, and asks nothing of the relay`, async () => {
      const { code, stdout, stderr } = await cliRun(argv, { env: { A2A_RELAY_URL: NO_RELAY } });
      assert.equal(code, 2, stderr);
      assert.equal(stdout, "");
      assert.match(stderr, expected);
    });
  }

  it("exits with 4 when no relay answers, with advice on stderr only", async () => {
    const { code, stdout, stderr } = await cliRun(["status", "--json"], { env: { A2A_RELAY_URL: NO_RELAY } });
    assert.equal(code, 4);
    assert.equal(stdout, "");
    assert.match(stderr, /^error: cannot reach the relay at http:\/\/127\.0\.0\.1:1: .*a2a-relay serve/);
  });

  it("exits with 130 when it is interrupted", async () => {
    const { code } = await cliRun(["status"], {
      env: { A2A_RELAY_URL: NO_RELAY },
      signal: AbortSignal.abort(),
    });
    assert.equal(code, 130);
  });

  it("takes global options before and after the command, the nearest first", async () => {
    const before = await cliRun(["--relay", NO_RELAY, "status"]);
    assert.match(before.stderr, /cannot reach the relay at http:\/\/127\.0\.0\.1:1:/);
    const both = await cliRun(["--relay", "http://127.0.0.1:2", "agents", "--relay", NO_RELAY, "list"]);
    assert.match(both.stderr, /cannot reach the relay at http:\/\/127\.0\.0\.1:1:/);
  });
});
