import { startBareHttp, startReference, startRelay } from "../contestants/contestants.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { agentId } from "../load/messages.ts";
import type { StreamOpener } from "../load/mailbox-stream.ts";
import type { Bench } from "./bench.ts";
import {
  arrivalRound,
  echoRound,
  measuredRate,
  medianRounds,
  type OnMessages,
  percentileFigures,
  warmUpRate,
} from "./paced-sends.ts";
import { roundsOverStarts } from "./starts.ts";
import { STREAM_KINDS } from "./stream-kinds.ts";

const READERS = 20;

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

/** One open stream for each of several agents; they stay open from round to round. */
class StreamReaders implements Disposable {
  readonly agents: readonly number[];
  readonly #streams = new DisposableStack();
  #onMessages: OnMessages | undefined;

  private constructor(firstAgent: number) {
    this.agents = Array.from({ length: READERS }, (_, index) => firstAgent + index);
  }

  static async open(relay: ServerProcess, open: StreamOpener, firstAgent: number): Promise<StreamReaders> {
    const readers = new StreamReaders(firstAgent);
    await Promise.all(readers.agents.map((agent) => readers.#open(relay, open, agentId(agent))));
    return readers;
  }

  begin(onMessages: OnMessages): void {
    this.#onMessages = onMessages;
  }

  async end(): Promise<void> {
    this.#onMessages = undefined;
  }

  [Symbol.dispose](): void {
    this.#streams.dispose();
  }

  /** A stream that ends later is not opened again: its messages are missed, and the round says so. */
  #open({ port }: ServerProcess, open: StreamOpener, agent: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const address = { port, agent, since: undefined, localAddress: undefined };
      const stream = open(address, {
        onOpen: resolve,
        onMessages: (items, _cursor, at) => this.#onMessages?.(items, at),
        onClose: reject,
      });
      this.#streams.use(stream);
    });
  }
}
