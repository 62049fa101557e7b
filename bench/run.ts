import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeCores } from "./machine/cores.ts";
import { describeMachine } from "./machine/machine.ts";
import { measureA2a } from "./measure/a2a.ts";
import { measureBatch } from "./measure/batch.ts";
import { type Bench, FULL, type Measure, QUICK } from "./measure/bench.ts";
import { measureEndToEnd } from "./measure/end-to-end.ts";
import { measureGrowth } from "./measure/growth.ts";
import { measureLatency } from "./measure/latency.ts";
import { measureMemory } from "./measure/memory.ts";
import { measurePostgres } from "./measure/postgres/postgres.ts";
import { measureSend } from "./measure/send.ts";
import { measureSocket } from "./measure/socket.ts";
import { measureStreamLatency } from "./measure/stream-latency.ts";
import { measureStreams } from "./measure/streams.ts";
import { measureTrust } from "./measure/trust.ts";
import { type BenchOptions, type MeasureName, readOptions, USAGE } from "./options.ts";
import { isBroken, machineLines, type MeasureReport, tableLines } from "./report.ts";

const MEASURE: Readonly<Record<MeasureName, Measure>> = {
  send: measureSend,
  e2e: measureEndToEnd,
  batch: measureBatch,
  latency: measureLatency,
  memory: measureMemory,
  growth: measureGrowth,
  trust: measureTrust,
  streams: measureStreams,
  "stream-latency": measureStreamLatency,
  socket: measureSocket,
  a2a: measureA2a,
  postgres: measurePostgres,
};

const EXIT_BROKEN = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const asked = readOptionsOrExplain();
if (asked === "help") console.log(USAGE);
else if (asked !== undefined) await run(asked);

function readOptionsOrExplain(): ReturnType<typeof readOptions> | undefined {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exitCode = EXIT_USAGE;
    return undefined;
  }
}

async function run(options: BenchOptions): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "a2a-relay-bench-"));
  // Also when it is interrupted: servers end with this process, and so does what they stored.
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  process.once("SIGINT", () => process.exit(EXIT_INTERRUPTED));
  process.once("SIGTERM", () => process.exit(EXIT_INTERRUPTED));
  const cores = takeCores();
  const machine = describeMachine(directory, cores);
  if (!options.json) for (const line of machineLines(machine)) console.log(line);
  const reports: MeasureReport[] = [];
  for (const measure of options.only) {
    const bench: Bench = {
      ...(options.quick ? QUICK : FULL),
      cores,
      directory,
      progress: (text) => showProgress(`${measure}: ${text}`),
    };
    const report = { measure, figures: await MEASURE[measure](bench) };
    showProgress("");
    reports.push(report);
    if (!options.json) for (const line of tableLines(report)) console.log(line);
  }
  conclude(options, { machine, reports });
}

function conclude(
  options: BenchOptions,
  result: { machine: object; reports: readonly MeasureReport[] },
): void {
  const broken = result.reports.flatMap(({ measure, figures }) =>
    figures.filter(isBroken).map(({ name }) => `${measure}: ${name}`),
  );
  if (options.json) console.log(JSON.stringify({ ...result, broken }, undefined, 2));
  else console.log(broken.length === 0 ? "\nEvery promise is kept." : `\nBroken: ${broken.join("; ")}`);
  if (broken.length > 0) process.exitCode = EXIT_BROKEN;
}

/** One line that is overwritten on a terminal; nothing where there is none. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}
