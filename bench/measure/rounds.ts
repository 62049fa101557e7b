import { setTimeout as sleep } from "node:timers/promises";
import { cpuMicrosOf } from "../machine/process-usage.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import type { Bound } from "../figure.ts";
import { closedLoop, type LoopEnd, type LoopResult } from "../load/closed-loop.ts";
import { type Connection, openConnections } from "../load/connection.ts";
import type { Bench } from "./bench.ts";
import { roundsOverStarts } from "./starts.ts";

/** One thing to be measured, in turns with others. */
interface Contestant {
  readonly name: string;
  /** Whose CPU time is measured. */
  readonly server: Pick<ServerProcess, "pid">;
  /** What it should reach a second. */
  readonly aim?: Bound;
}

/** Measured by cycles of requests, over many connections at the same time. */
export interface Runner extends Contestant {
  readonly server: Pick<ServerProcess, "pid" | "port">;
  readonly cycle: (connection: Connection, number: number) => Promise<void>;
  /** Messages that one cycle moves; 1 unless said otherwise. */
  readonly messagesPerCycle?: number;
}

/** Measured by a load that goes on by itself. */
export interface FlowRunner extends Contestant {
  readonly open: () => Promise<Flow>;
}

export interface Flow extends Disposable {
  /** A cycle is one message. */
  run(durationMs: number): Promise<LoopResult>;
}

/** Starts the contestants, and leaves what has to be ended with `servers`. */
export type StartRunners = (servers: AsyncDisposableStack) => Promise<readonly (Runner | FlowRunner)[]>;

/** What was seen of a runner, round by round. */
export interface Samples extends Pick<Contestant, "name" | "aim"> {
  readonly perSecond: readonly number[];
  /** Of the server, for one message; empty where the system does not tell. */
  readonly cpuMicros: readonly number[];
  /** How busy the load generator was: near 100 it would have been the bottleneck. */
  readonly loadBusyPercent: readonly number[];
}

// A server that was busy a moment ago tidies up, and must not do so while the next is measured.
const SETTLE_MS = 400;

/** Rounds of all runners in turns, forwards and backwards, so that no one has the better half of the time. */
export async function interleave(bench: Bench, start: StartRunners): Promise<readonly Samples[]> {
  const samples: ReturnType<typeof newSamples>[] = [];
  const run = (runner: Runner | FlowRunner, afterMs: number): Promise<RoundSample> =>
    "open" in runner ? runFlow(runner, afterMs) : runRound(runner, bench.connections, { afterMs });
  await roundsOverStarts(bench, async (servers) => {
    const runners = await start(servers);
    for (const runner of runners) await run(runner, bench.warmUpMs);
    const order = [...runners.entries()];
    return async (round) => {
      for (const [index, runner] of round % 2 === 0 ? order : order.toReversed()) {
        (samples[index] ??= newSamples(runner)).add(await run(runner, bench.roundMs));
      }
    };
  });
  return samples;
}

export interface RoundSample {
  readonly perSecond: number;
  readonly cpuMicros: number | undefined;
  readonly loadBusyPercent: number;
}

export async function runRound(runner: Runner, connectionCount: number, end: LoopEnd): Promise<RoundSample> {
  using connections = await openConnections(runner.server.port, connectionCount);
  return await sampled(runner, () => closedLoop(connections, end, runner.cycle));
}

async function runFlow(runner: FlowRunner, durationMs: number): Promise<RoundSample> {
  using flow = await runner.open();
  return await sampled(runner, () => flow.run(durationMs));
}

async function sampled(
  { server, messagesPerCycle = 1 }: Contestant & Pick<Runner, "messagesPerCycle">,
  load: () => Promise<LoopResult>,
): Promise<RoundSample> {
  const cpuBefore = cpuMicrosOf(server.pid);
  const loadCpu = process.cpuUsage();
  const { cycles, elapsedMs } = await load();
  const used = process.cpuUsage(loadCpu);
  const messages = cycles * messagesPerCycle;
  const cpuAfter = cpuMicrosOf(server.pid);
  await sleep(SETTLE_MS);
  return {
    perSecond: (messages / elapsedMs) * 1_000,
    cpuMicros:
      cpuBefore === undefined || cpuAfter === undefined ? undefined : (cpuAfter - cpuBefore) / messages,
    loadBusyPercent: (used.user + used.system) / elapsedMs / 10,
  };
}

function newSamples({ name, aim }: Contestant): Samples & { add(sample: RoundSample): void } {
  const perSecond: number[] = [];
  const cpuMicros: number[] = [];
  const loadBusyPercent: number[] = [];
  return {
    name,
    ...(aim === undefined ? {} : { aim }),
    perSecond,
    cpuMicros,
    loadBusyPercent,
    add(sample) {
      perSecond.push(sample.perSecond);
      if (sample.cpuMicros !== undefined) cpuMicros.push(sample.cpuMicros);
      loadBusyPercent.push(sample.loadBusyPercent);
    },
  };
}
