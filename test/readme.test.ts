import assert from "node:assert/strict";
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { describe, it } from "node:test";
import { promisify } from "node:util";

/**
 * Follows the README as a reader would, with one terminal for the relay, one for the commands and one for the
 * program: every `sh` block of "Try it" is run as it stands, in order, in one shell, and must print what the
 * `text` block after it shows. Only the port and the data directory differ, through the environment.
 */

const ROOT = join(import.meta.dirname, "..");
const README = readFileSync(join(ROOT, "README.md"), "utf8");
/** How it tells the reader to start the program, whose file the test keeps out of the checkout. */
const PROGRAM_COMMAND = /`(npx node .*) echo\.ts`/.exec(README)?.[1] ?? "";
const STEP_MS_MAX = 60_000;

interface Block {
  readonly language: string;
  readonly text: string;
}

describe("the README", () => {
  const start = blocksOf("Start");
  const tour = blocksOf("Try it");

  it("starts the relay in two commands", () => {
    // `npm ci` is not run again: it brought the Node that runs this test, and would take it away first.
    assert.deepEqual(start[0]?.text.split("\n"), ["npm ci", "npm start"]);
    assert.equal(start[1]?.language, "text");
  });

  it("and the guides show programs that the compiler accepts", async () => {
    await using folder = await TemporaryFolder.create();
    const guides = globSync("docs/guides/*.md", { cwd: ROOT }).map((path) =>
      readFileSync(join(ROOT, path), "utf8"),
    );
    const programs = [README, ...guides].flatMap(blocksIn).filter(({ language }) => language === "ts");
    assert.ok(programs.length > 1);
    for (const [index, { text }] of programs.entries()) await folder.write(`${index}.ts`, text);
    const config = { extends: join(ROOT, "tsconfig.json"), include: ["*.ts"] };
    const project = await folder.write("tsconfig.json", JSON.stringify(config));
    await promisify(execFile)(join(ROOT, "node_modules", ".bin", "tsc"), ["--project", project]);
  });

  it("can be followed from the first command to the last, and shows what they print", async () => {
    await using folder = await TemporaryFolder.create();
    const data = join(folder.path, "data");
    const home = { HOME: folder.path, A2A_RELAY_DATA: data };
    await using terminals = new AsyncDisposableStack();
    const relay = terminals.use(new Terminal("npm start", { ...home, PORT: "0" }));
    const url = /listening\s+(\S+)/.exec(await relay.said(/listening\s+\S+\n[\s\S]*docs\s+\S+\n/))?.[1] ?? "";
    const here = { ...home, A2A_RELAY_URL: url };
    const shown = (text: string): string =>
      text.replaceAll("http://127.0.0.1:8080", url).replaceAll("~/.a2a-relay", data);
    assert.match(relay.output, patternOf(shown(start[1]?.text ?? "")));

    const shell = terminals.use(new Terminal("sh", here));
    for (const [index, { language, text }] of tour.entries()) {
      if (language === "ts") {
        const path = await folder.write("echo.ts", text);
        const program = terminals.use(new Terminal(`${PROGRAM_COMMAND} ${path}`, here));
        await program.said(/^echo@me takes tasks\n$/);
      }
      if (language !== "sh") continue;
      const printed = await shell.run(text);
      const next = tour[index + 1];
      if (next?.language === "text")
        assert.match(printed, patternOf(shown(next.text), { whole: true }), text);
    }
  });
});

function blocksOf(heading: string): readonly Block[] {
  const section = README.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return blocksIn(section);
}

function blocksIn(text: string): readonly Block[] {
  const blocks = text.matchAll(/^```(\w+)\n(.*?)\n```$/gms);
  return [...blocks].map((match) => ({ language: match[1] ?? "", text: match[2] ?? "" }));
}

/**
 * What is shown stands for what is printed: times, ages and ids differ each time, `…` stands for whatever is
 * left out, and columns are as wide as what is in them.
 */
function patternOf(shown: string, options: { readonly whole?: boolean } = {}): RegExp {
  const standIns: readonly (readonly [shown: RegExp, printed: string])[] = [
    [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/y, "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ"],
    [/[0-9a-f]{8}-…/y, "[0-9a-f]{8}-[0-9a-f-]{27}"],
    [/(?<= )\d+m?s(?= )/y, "\\d+m?s"],
    [/…/y, ".*"],
    [/\s+/y, "\\s+"],
  ];
  let pattern = "";
  for (let index = 0; index < shown.length;) {
    const found = standIns.find(([part]) => {
      part.lastIndex = index;
      return part.test(shown);
    });
    pattern += found === undefined ? shown.charAt(index).replace(/\W/, "\\$&") : found[1];
    index = found === undefined ? index + 1 : found[0].lastIndex;
  }
  return new RegExp(options.whole === true ? `^\\s*${pattern}\\s*$` : pattern);
}

/** Outside the checkout, so that no other test sees it, and yet with its packages. */
class TemporaryFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<TemporaryFolder> {
    const path = await mkdtemp(join(tmpdir(), "a2a-relay-readme-"));
    await symlink(join(ROOT, "node_modules"), join(path, "node_modules"));
    await writeFile(join(path, "package.json"), '{ "type": "module" }\n');
    return new TemporaryFolder(path);
  }

  async write(name: string, text: string): Promise<string> {
    const path = join(this.path, name);
    await writeFile(path, text);
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** A terminal of the reader: one command line in the checkout, and all that it and its children say. */
class Terminal implements AsyncDisposable {
  output = "";
  readonly #command: string;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  #onOutput: () => void = () => undefined;

  constructor(command: string, env: Readonly<Record<string, string>>) {
    this.#command = command;
    const quiet = { NO_COLOR: "1", npm_config_offline: "true", npm_config_update_notifier: "false" };
    this.#process = spawn(`exec 2>&1; ${command}`, {
      cwd: ROOT,
      env: { PATH: process.env["PATH"] ?? "", ...quiet, ...env },
      // Its own group, as in a terminal: npm and what it starts are stopped together.
      detached: true,
      shell: "/bin/sh",
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#process.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.output += text;
      this.#onOutput();
    });
    this.#process.on("close", () => this.#onOutput());
  }

  /** All that was said, once it contains the pattern. */
  async said(pattern: RegExp, from = 0): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const look = (): void => {
      const said = this.output.slice(from);
      if (pattern.test(said)) resolve(said);
      else if (this.#process.exitCode !== null) reject(new Error(`${this.#command} ended:\n${this.output}`));
    };
    const late = setTimeout(() => {
      reject(new Error(`${this.#command} did not say ${String(pattern)} in time:\n${this.output}`));
    }, STEP_MS_MAX);
    this.#onOutput = look;
    look();
    return promise.finally(() => clearTimeout(late));
  }

  /** Types the lines into the shell and answers with what they print; the first that fails ends it. */
  async run(lines: string): Promise<string> {
    const from = this.output.length;
    this.#process.stdin.write(`set -e\n${lines}\nset +e\necho "[done]"\n`);
    return (await this.said(/\[done\]\n$/, from)).replace(/\[done\]\n$/, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process;
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, "close");
    process.kill(-child.pid, "SIGTERM");
    await closed;
  }
}
