import { freshDirectory } from "../contestants/contestants.ts";
import { registerAgents, relayArgs } from "../contestants/relay.ts";
import { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, figureOf } from "../figure.ts";
import type { StreamOpener } from "../load/mailbox-stream.ts";
import { ReturningStreams } from "../load/returning-streams.ts";
import { type ConnectionPlan, planConnections, readConnectionLimits } from "../machine/connection-limits.ts";
import { COLLECTING_ARGS, settledKibOf } from "../machine/settled-memory.ts";
import type { Bench } from "./bench.ts";
import { sendToAll } from "./memory.ts";
import { STREAM_KINDS } from "./stream-kinds.ts";

/** Fewer agents than streams: registering is not what is measured, and one message is for several readers. */
const STREAMS_OF_AGENT = 10;

interface Sample {
  readonly eachKib: number;
  /** From the first connection to the last stream that opened. */
  readonly openMs: number;
  /** From the send to them all to the last event. */
  readonly arrivalMs: number;
  /** From the order to stop to the moment it listens again. */
  readonly awayMs: number;
  /** From that moment until half of the streams are open again, and until all of them are. */
  readonly halfReturnMs: number;
  readonly returnMs: number;
}

/** What many open streams cost while nothing comes, and how soon they are back when the relay was away. */
export async function measureStreams(bench: Bench): Promise<readonly Figure[]> {
  const plan = planConnections(bench.openStreams, readConnectionLimits());
  const figures: Figure[] = [];
  for (const { name, open } of STREAM_KINDS) {
    const samples: Sample[] = [];
    for (let start = 0; start < bench.starts; start += 1) {
      bench.progress(`${name}: start ${start + 1} of ${bench.starts}`);
      samples.push(await sampleOnce(bench, open, plan));
    }
    figures.push(...figuresOf(name, plan.count, samples));
  }
  return figures;
}

function figuresOf(kind: string, streams: number, samples: readonly Sample[]): readonly Figure[] {
  const count = streams.toLocaleString("en");
  const seconds = (member: "openMs" | "awayMs" | "halfReturnMs" | "returnMs"): readonly number[] =>
    samples.map((sample) => sample[member] / 1_000);
  return [
    figureOf(
      `${kind}: memory each, of ${count}`,
      "KiB",
      samples.map(({ eachKib }) => eachKib),
      { must: { atMost: 25 } },
    ),
    figureOf(`${kind}: until ${count} are open`, "s", seconds("openMs")),
    figureOf(
      `${kind}: one message for each at once, until the last has it`,
      "ms",
      samples.map(({ arrivalMs }) => arrivalMs),
    ),
    figureOf(`${kind}: relay stopped, until it listens again`, "s", seconds("awayMs")),
    figureOf(`${kind}: from then until half of them are back`, "s", seconds("halfReturnMs")),
    figureOf(`${kind}: from then until all ${count} are back`, "s", seconds("returnMs")),
  ];
}

async function sampleOnce(bench: Bench, open: StreamOpener, plan: ConnectionPlan): Promise<Sample> {
  const directory = freshDirectory(bench);
  const settings = { directory, cores: bench.cores };
  const args = [...COLLECTING_ARGS, ...relayArgs(directory)];
  await using relay = await ServerProcess.start("relay", args, settings);
  const { port } = relay;
  const ids = agentIds(plan.count);
  await registerAgents(relay, { ids });
  const idleKib = await settledKibOf(relay.pid);
  const openAt = performance.now();
  using streams = await ReturningStreams.open(open, addressesOf(plan, ids, port));
  const openMs = performance.now() - openAt;
  const waitingKib = await settledKibOf(relay.pid);
  const sentAt = performance.now();
  await sendToAll(relay, ids);
  await streams.wereShown(1);
  const arrivalMs = performance.now() - sentAt;
  const stopAt = performance.now();
  await relay[Symbol.asyncDispose]();
  await using again = await ServerProcess.start("relay", relayArgs(directory, port), settings);
  const listensAt = performance.now();
  await streams.areOpen(2, 0.5);
  const halfReturnMs = performance.now() - listensAt;
  await streams.areOpen(2);
  const returnMs = performance.now() - listensAt;
  // A reader that came back gets only what is sent from now on.
  await sendToAll(again, ids);
  await streams.wereShown(2);
  const eachKib = (waitingKib - idleKib) / plan.count;
  return { eachKib, openMs, arrivalMs, awayMs: listensAt - stopAt, halfReturnMs, returnMs };
}

function agentIds(streams: number): readonly string[] {
  return Array.from({ length: Math.ceil(streams / STREAMS_OF_AGENT) }, (_, index) => `reader-${index}@bench`);
}

function addressesOf(
  { count, localAddresses }: ConnectionPlan,
  ids: readonly string[],
  port: number,
): Parameters<typeof ReturningStreams.open>[1] {
  return Array.from({ length: count }, (_, index) => ({
    port,
    agent: ids[index % ids.length] ?? "",
    localAddress: localAddresses[index % localAddresses.length],
  }));
}
