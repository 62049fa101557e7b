import type { EmbeddedServer } from "../../../packages/relay/testing/postgres-server.ts";
import { runCalls, startQueue } from "../../contestants/postgres/postgres-contestants.ts";
import type { Figure } from "../../figure.ts";
import { cpuMicrosOf } from "../../machine/process-usage.ts";
import type { Bench } from "../bench.ts";

const PARTS = 10;

/** What a round trip costs the server at the beginning of a long run and at its end. */
export async function flatnessFigures(bench: Bench, server: EmbeddedServer): Promise<readonly Figure[]> {
  await using relay = await startQueue(bench, "relay", await server.newDatabase());
  const order = { act: "roundTrip", callers: bench.connections } as const;
  await runCalls(relay, { ...order, end: { afterMs: bench.warmUpMs } });
  const afterCycles = bench.flatCycles / PARTS;
  const endsAt = performance.now() + bench.flatMsMax;
  const costs: number[] = [];
  while (costs.length < PARTS && performance.now() < endsAt) {
    bench.progress(`round trips, part ${costs.length + 1} of ${PARTS}`);
    const before = cpuMicrosOf(server.pid);
    const { cycles } = await runCalls(relay, { ...order, end: { afterCycles } });
    const after = cpuMicrosOf(server.pid);
    if (before === undefined || after === undefined) return [];
    costs.push((after - before) / cycles);
  }
  return flatness(afterCycles, costs);
}

/** A slow machine gets no further than some of the parts; the name says how far. */
function flatness(cyclesOfPart: number, costs: readonly number[]): readonly Figure[] {
  const [first = Number.NaN] = costs;
  const last = costs.at(-1) ?? Number.NaN;
  const [part, all] = [1, costs.length].map((parts) => (parts * cyclesOfPart).toLocaleString("en"));
  const name = `PostgreSQL CPU a round trip, of ${all}`;
  return [
    { name: `${name}: last ${part} / first`, unit: "x", value: last / first },
    { name: `${name}: first ${part}`, unit: "µs", value: first },
    { name: `${name}: last ${part}`, unit: "µs", value: last },
  ];
}
