import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { childEnv } from "./child-env.ts";

/** What it takes to follow a page of the documentation as a reader would. */

export const ROOT = join(import.meta.dirname, "..", "..");
const STEP_MS_MAX = 60_000;

export interface Block {
  readonly language: string;
  /** What stands behind the language, such as whose output it is. */
  readonly about: string;
  readonly text: string;
}

export function blocksIn(page: string): readonly Block[] {
  const blocks = page.matchAll(/^```(\w+)(?: ([^\n]+))?\n(.*?)\n```$/gms);
  return [...blocks].map(([, language = "", about = "", text = ""]) => ({ language, about, text }));
}

/**
 * What is shown stands for what is printed: times, ages and ids differ each time, `…` stands for whatever is
 * left out, and columns are as wide as what is in them.
 */
export function patternOf(shown: string, options: { readonly whole?: boolean } = {}): RegExp {
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
export class TemporaryFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<TemporaryFolder> {
    const path = await mkdtemp(join(tmpdir(), "a2a-relay-reader-"));
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

/** A terminal of the reader: one command line, in the checkout unless said otherwise, and all that is said there. */
export class Terminal implements AsyncDisposable {
  output = "";
  readonly #command: string;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  #onOutput: () => void = () => undefined;

  constructor(command: string, env: Readonly<Record<string, string>>, cwd = ROOT) {
    this.#command = command;
    const quiet = { NO_COLOR: "1", npm_config_offline: "true", npm_config_update_notifier: "false" };
    this.#process = spawn(`exec 2>&1; ${command}`, {
      cwd,
      env: childEnv({ ...quiet, ...env }),
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
    const check = (): void => {
      const said = this.output.slice(from);
      if (pattern.test(said)) resolve(said);
      else if (this.#process.exitCode !== null) reject(new Error(`${this.#command} ended:\n${this.output}`));
    };
    const late = setTimeout(() => {
      reject(new Error(`${this.#command} did not say ${String(pattern)} in time:\n${this.output}`));
    }, STEP_MS_MAX);
    this.#onOutput = check;
    check();
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
