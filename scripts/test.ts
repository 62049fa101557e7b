import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";

/**
 * What `npm test` runs: four stages, one after the other, ending at the first that fails.
 * `npm test -- unit features` runs only those named.
 */

const ROOT = join(import.meta.dirname, "..");
const MINUTE_MS = 60_000;
/** How long a stage that is out of time may take to stop what it started. */
const STOP_MS = 10_000;

interface Stage {
  readonly name: string;
  readonly what: string;
  readonly files: string;
  /** Ends a stage that hangs. */
  readonly timeoutMs: number;
  /** The programs to run over the files, each a list of arguments for Node. */
  commands(files: readonly string[]): readonly (readonly string[])[];
}

const STAGES: readonly Stage[] = [
  {
    name: "unit",
    what: "unit and contract tests, beside the sources",
    files: "{bench,packages/*/{src,testing}}/**/*.test.ts",
    timeoutMs: 5 * MINUTE_MS,
    // They share nothing, so one process does: a process for each file takes many times as long.
    commands: (files) => [["--test", "--test-isolation=none", "--test-timeout=60000", ...files]],
  },
  {
    name: "product",
    what: "tests of the whole product",
    files: "test/**/*.test.ts",
    timeoutMs: 12 * MINUTE_MS,
    // Two at a time, because each starts relays of its own.
    commands: (files) => [["--test", "--test-concurrency=2", "--test-timeout=600000", ...files]],
  },
  {
    name: "features",
    what: "scenarios in Gherkin",
    files: "test/features/**/*.feature",
    timeoutMs: 5 * MINUTE_MS,
    // Where they lie is said in cucumber.json, for editors as well.
    commands: () => [["node_modules/@cucumber/cucumber/bin/cucumber.js"]],
  },
  {
    name: "examples",
    what: "examples, which check themselves",
    files: "examples/**/*.ts",
    timeoutMs: MINUTE_MS,
    commands: (files) => files.map((file) => [file]),
  },
];

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

process.exitCode = await main(process.argv.slice(2));

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !STAGES.some((stage) => stage.name === name));
  if (unknown.length > 0) {
    const known = STAGES.map((stage) => `  ${stage.name.padEnd(10)}${stage.what}`).join("\n");
    process.stderr.write(`There is no stage ${unknown.join(", ")}. The stages are:\n${known}\n`);
    return 2;
  }
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const chosen = STAGES.filter(({ name }) => names.length === 0 || names.includes(name));
  for (const stage of chosen) {
    if (await runStage(stage, tally)) continue;
    process.stdout.write(`\n${describeTally(tally)}; ended at the stage "${stage.name}"\n`);
    return 1;
  }
  process.stdout.write(`\n${describeTally(tally)}\n`);
  return 0;
}

async function runStage(stage: Stage, tally: Tally): Promise<boolean> {
  const files = globSync(stage.files, { cwd: ROOT }).toSorted();
  if (files.length === 0) {
    process.stdout.write(`\n== ${stage.name}: there are none yet (${stage.files})\n`);
    return true;
  }
  process.stdout.write(`\n== ${stage.name}: ${stage.what}\n`);
  const startedAtMs = performance.now();
  const commands = stage.commands(files);
  for (const words of commands) {
    if (commands.length > 1) process.stdout.write(`-- ${words.join(" ")}\n`);
    if (!(await run(words, stage, tally))) return false;
  }
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  process.stdout.write(`== ${stage.name}: ${seconds} s\n`);
  return true;
}

/** Runs one program under this Node, shows what it says, and counts what it reports. */
async function run(words: readonly string[], stage: Stage, tally: Tally): Promise<boolean> {
  const child = spawn(process.execPath, ["--conditions=source", ...words], {
    cwd: ROOT,
    env: { ...process.env, ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = (): void => {
    process.stderr.write(`${stage.name} is not done after ${stage.timeoutMs / 1_000} s and is stopped\n`);
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), STOP_MS).unref();
  };
  const timer = setTimeout(stop, stage.timeoutMs);
  const forward = (): boolean => child.kill("SIGTERM");
  process.on("SIGTERM", forward);
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    process.stdout.write(chunk);
    said += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  process.off("SIGTERM", forward);
  const found = read(stripVTControlCharacters(said));
  // A program without a report of its own, such as an example, is one check.
  if (found === undefined) tally[code === 0 ? "passed" : "failed"] += 1;
  else for (const key of ["passed", "failed", "skipped"] as const) tally[key] += found[key];
  return code === 0;
}

/** The figures of node:test's last report, or of cucumber's; never our own. */
function read(said: string): Tally | undefined {
  const figure = (pattern: RegExp, text: string): number =>
    Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);
  if (/^ℹ tests \d+$/m.test(said)) {
    return {
      passed: figure(/^ℹ pass (\d+)$/gm, said),
      failed: figure(/^ℹ fail (\d+)$/gm, said) + figure(/^ℹ cancelled (\d+)$/gm, said),
      skipped: figure(/^ℹ skipped (\d+)$/gm, said) + figure(/^ℹ todo (\d+)$/gm, said),
    };
  }
  const scenarios = /^\d+ scenarios? \((.+)\)$/m.exec(said)?.[1];
  if (scenarios === undefined) return undefined;
  const passed = figure(/(\d+) passed/g, scenarios);
  const skipped = figure(/(\d+) skipped/g, scenarios);
  return { passed, skipped, failed: figure(/^(\d+) scenarios?/gm, said) - passed - skipped };
}

function describeTally({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
