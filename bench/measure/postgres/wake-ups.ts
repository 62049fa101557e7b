import type { EmbeddedServer } from "../../../packages/relay/testing/postgres-server.ts";
import { startRelayOn } from "../../contestants/postgres/postgres-contestants.ts";
import { type Figure, figureOf } from "../../figure.ts";
import { SseStream } from "../../load/sse-stream.ts";
import { percentile } from "../../statistics.ts";
import type { Bench } from "../bench.ts";
import { arrivalRound, measuredRate, warmUpRate } from "../paced-sends.ts";
import { roundsOverStarts } from "../starts.ts";
import { StreamReaders } from "../stream-readers.ts";

const NAME = "send at one relay to an open stream at another";

/** From a send at one relay to its event at the reader of another, at 200 a second. */
export async function wakeUpFigures(bench: Bench, server: EmbeddedServer): Promise<readonly Figure[]> {
  const rounds: number[][] = [];
  await roundsOverStarts(bench, async (servers) => {
    const database = await server.newDatabase();
    const one = servers.use(await startRelayOn(bench, database));
    const other = servers.use(await startRelayOn(bench, database));
    const open = (...args: ConstructorParameters<typeof SseStream>): SseStream => new SseStream(...args);
    const readers = servers.use(await StreamReaders.open(other, open, 0));
    await arrivalRound(one, warmUpRate(bench), readers);
    return async () => void rounds.push(await arrivalRound(one, measuredRate(bench), readers));
  });
  const at = (share: number): readonly number[] => rounds.map((timesMs) => percentile(timesMs, share));
  return [
    figureOf(`${NAME}: p50`, "ms", at(0.5), { must: { atMost: 20 } }),
    figureOf(`${NAME}: p99`, "ms", at(0.99)),
  ];
}
