import { startBareHttp, startReference, startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import type { Bench } from "./bench.ts";
import {
  arrivalRound,
  echoRound,
  measuredRate,
  medianRounds,
  percentileFigures,
  warmUpRate,
} from "./paced-sends.ts";
import { roundsOverStarts } from "./starts.ts";
import { STREAM_KINDS } from "./stream-kinds.ts";
import { READERS, StreamReaders } from "./stream-readers.ts";

/** From the moment a send is written to the moment its event is at the reader of a stream that was open. */
export async function measureStreamLatency(bench: Bench): Promise<readonly Figure[]> {
  const echoes: number[][] = [];
  const rows: number[][] = [];
  const arrivals = STREAM_KINDS.map(({ name }) => ({ name, timesMs: [] as number[][] }));
  await roundsOverStarts(bench, async (servers) => {
    const bare = servers.use(await startBareHttp(bench));
    const reference = servers.use(await startReference(bench));
    const relay = servers.use(await startRelay(bench));
    const audiences: StreamReaders[] = [];
    for (const [index, { open }] of STREAM_KINDS.entries()) {
      // Separate agents, so that no message is sent over two kinds of streams.
      audiences.push(servers.use(await StreamReaders.open(relay, open, index * READERS)));
    }
    for (const readers of audiences) await arrivalRound(relay, warmUpRate(bench), readers);
    for (const server of [bare, reference]) await echoRound(server, warmUpRate(bench));
    return async () => {
      echoes.push(await echoRound(bare, measuredRate(bench)));
      rows.push(await echoRound(reference, measuredRate(bench)));
      for (const [index, readers] of audiences.entries()) {
        arrivals[index]?.timesMs.push(await arrivalRound(relay, measuredRate(bench), readers));
      }
    };
  });
  return [
    ...arrivals.map(({ name, timesMs }) =>
      ratioOf(`${name} / bare node:http, p50`, medianRounds(timesMs), medianRounds(echoes)),
    ),
    // The measure for the streams: one row, written and answered. Most of it is the disk.
    ratioOf("Fastify + SQLite, a send alone / bare node:http, p50", medianRounds(rows), medianRounds(echoes)),
    ...arrivals.flatMap(({ name, timesMs }) => percentileFigures(`send to open ${name} stream`, timesMs)),
    ...percentileFigures("Fastify + SQLite, one row a message, its answer alone", rows),
    ...percentileFigures("bare node:http echo, its round trip alone", echoes),
  ];
}
