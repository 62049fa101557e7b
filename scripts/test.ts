import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";

/**
 * What `npm test` runs: the programs of five stages, some at a time, those that take longest first.
 * `npm test -- unit features` runs only the stages named.
 */

const ROOT = join(import.meta.dirname, "..");
const MINUTE_MS = 60_000;
/** How long a program that is out of time may take to stop what it started. */
const STOP_MS = 10_000;
/** One more than the cores, because many tests wait for a process to start. */
const PROGRAMS_AT_ONCE = Math.max(2, availableParallelism()) + 1;

interface Stage {
  readonly name: string;
  readonly what: string;
  /** Ends a program that hangs. */
  readonly timeoutMs: number;
  /** The programs to run, each a list of arguments for Node. */
  programs(): readonly (readonly string[])[];
}

/** Tests of what a store decides. The others would say the same about any store. */
const ON_POSTGRES = [
  "capabilities",
  "idempotency",
  "inbox",
  "keys",
  "long-poll",
  "mailbox",
  "messages",
  "operators",
  "push",
  "push-receivers",
  "remote-agents",
  "resume",
  "sdk-client",
  "socket",
  "stream-resume",
  "streams",
  "task-push",
  "task-queue",
  "tasks",
  "trust",
];
/** SQLite commits in the order of the calls; PostgreSQL promises only that positions follow the commits. */
const SQLITE_ORDER = "answers in whatever order things are done";

const STAGES: readonly Stage[] = [
  {
    name: "unit",
    what: "unit and contract tests, beside the sources",
    timeoutMs: 10 * MINUTE_MS,
    programs: () => shares(find("{bench,packages/*/{src,testing}}/**/*.test.ts"), 2).map(testsTogether),
  },
  {
    name: "product",
    what: "tests of the whole product",
    timeoutMs: 10 * MINUTE_MS,
    programs: () => [
      // Their relays run inside the test, so many files share a process.
      ...shares(find("test/{a2a,http}/*.test.ts"), 4).map(testsTogether),
      ...find("test/{cassettes,crash,faults}/*.test.ts").map(testsAlone),
      ...find("test/*.test.ts").map(testsAlone),
    ],
  },
  {
    name: "postgres",
    what: "tests of the whole product on PostgreSQL, and of several relays on one database",
    timeoutMs: 10 * MINUTE_MS,
    programs: () => [
      ...shares(find(`test/{a2a,http}/{${ON_POSTGRES.join()}}.test.ts`), 2).map(testsOnPostgres),
      ...find("test/postgres/*.test.ts").map(testsAlone),
    ],
  },
  {
    name: "features",
    what: "scenarios in Gherkin",
    timeoutMs: 10 * MINUTE_MS,
    // cucumber.json says where they are, for editors as well.
    programs: () => [["node_modules/@cucumber/cucumber/bin/cucumber.js"]],
  },
  {
    name: "examples",
    what: "examples, which check themselves",
    timeoutMs: 3 * MINUTE_MS,
    programs: () => find("examples/**/*.ts").map((file) => [file]),
  },
];

interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Program {
  readonly stage: Stage;
  readonly words: readonly string[];
}

interface Outcome {
  readonly title: string;
  readonly ok: boolean;
  readonly tally: Tally;
}

const running = new Set<ChildProcess>();

process.exitCode = await main(process.argv.slice(2));

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !STAGES.some((stage) => stage.name === name));
  if (unknown.length > 0) {
    const known = STAGES.map((stage) => `  ${stage.name.padEnd(10)}${stage.what}`).join("\n");
    process.stderr.write(`There is no stage ${unknown.join(", ")}. The stages are:\n${known}\n`);
    return 2;
  }
  const chosen = STAGES.filter(({ name }) => names.length === 0 || names.includes(name));
  const outcomes = await runAll(
    chosen.flatMap((stage) => stage.programs().map((words) => ({ stage, words }))),
  );
  for (const { title } of outcomes.filter(({ ok }) => !ok)) process.stdout.write(`\nfailed: ${title}`);
  const sum = (key: keyof Tally): number => outcomes.reduce((total, { tally }) => total + tally[key], 0);
  process.stdout.write(`\n${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped\n`);
  return outcomes.length > 0 && outcomes.every(({ ok }) => ok) ? 0 : 1;
}

async function runAll(programs: readonly Program[]): Promise<readonly Outcome[]> {
  const left = [...programs];
  process.once("SIGTERM", () => {
    left.length = 0;
    for (const child of running) child.kill("SIGTERM");
  });
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) outcomes.push(await run(next));
  };
  await Promise.all(Array.from({ length: PROGRAMS_AT_ONCE }, work));
  return outcomes;
}

/** Runs one program under this Node, prints its output once it has ended, and counts what it reports. */
async function run({ stage, words }: Program): Promise<Outcome> {
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, ["--conditions=source", ...words], {
    cwd: ROOT,
    env: {
      // Every process, also of a relay that a test starts, loads the sources compiled.
      NODE_COMPILE_CACHE: join(ROOT, "node_modules", ".cache", "node-compile"),
      ...process.env,
      ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const stop = (): void => {
    output += `\nis not done after ${stage.timeoutMs / 1_000} s and is stopped\n`;
    child.kill("SIGTERM");
    setTimeout(() => {
      child.kill("SIGKILL");
      // What it started may outlive it and hold these open.
      child.stdout.destroy();
      child.stderr.destroy();
    }, STOP_MS).unref();
  };
  const timer = setTimeout(stop, stage.timeoutMs);
  running.add(child);
  const [code] = (await once(child, "close")) as [number | null];
  running.delete(child);
  clearTimeout(timer);
  const files = words.filter((word) => !word.startsWith("--"));
  const title = `${stage.name}: ${files[0]}${files.length > 1 ? ` and ${files.length - 1} more` : ""}`;
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  process.stdout.write(`\n== ${title}\n${output}== ${title}: ${seconds} s\n`);
  return { title, ok: code === 0, tally: tallyOf(stripVTControlCharacters(output), code === 0) };
}

function find(pattern: string): readonly string[] {
  return globSync(pattern, { cwd: ROOT }).toSorted();
}

/** Deals the files out in turn: neighbours, which are often slow for the same reason, end up apart. */
function shares(files: readonly string[], count: number): readonly (readonly string[])[] {
  return Array.from({ length: count }, (_, share) => files.filter((_file, index) => index % count === share));
}

function testsAlone(file: string): readonly string[] {
  return ["--test", "--test-timeout=600000", file];
}

function testsTogether(files: readonly string[]): readonly string[] {
  return ["--test", "--test-isolation=none", "--test-timeout=120000", ...files];
}

function testsOnPostgres(files: readonly string[]): readonly string[] {
  const skipped = `--test-skip-pattern=${SQLITE_ORDER}`;
  return ["--import", "./test/support/on-postgres.ts", skipped, ...testsTogether(files)];
}

/** The figures of node:test's last report, or of cucumber's. A program without a report, such as an example, is one. */
function tallyOf(output: string, ok: boolean): Tally {
  const figure = (pattern: RegExp, text: string): number =>
    Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);
  if (/^ℹ tests \d+$/m.test(output)) {
    return {
      passed: figure(/^ℹ pass (\d+)$/gm, output),
      failed: figure(/^ℹ fail (\d+)$/gm, output) + figure(/^ℹ cancelled (\d+)$/gm, output),
      skipped: figure(/^ℹ skipped (\d+)$/gm, output) + figure(/^ℹ todo (\d+)$/gm, output),
    };
  }
  const scenarios = /^\d+ scenarios? \((.+)\)$/m.exec(output)?.[1];
  if (scenarios === undefined) return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0 };
  const passed = figure(/(\d+) passed/g, scenarios);
  const skipped = figure(/(\d+) skipped/g, scenarios);
  return { passed, skipped, failed: figure(/^(\d+) scenarios?/gm, output) - passed - skipped };
}
