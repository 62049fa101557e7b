import { setTimeout as sleep } from "node:timers/promises";
import { freshDirectory } from "../contestants/contestants.ts";
import { registerAgents, relayArgs } from "../contestants/relay.ts";
import { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, figureOf } from "../figure.ts";
import { jsonOf, openConnections } from "../load/connection.ts";
import { getRequest, postRequest } from "../load/http-request.ts";
import { messageTo } from "../load/messages.ts";
import { residentKibOf } from "../machine/process-usage.ts";
import type { Bench } from "./bench.ts";

const WAIT_MS = 60_000;
const SETTLE_MS = 2_000;
const STARTS = 3;
const BATCH_MAX = 500;

interface Sample {
  readonly idleKib: number;
  readonly waitingKib: number;
  /** From the send to them all to the last answer. */
  readonly wakeAllMs: number;
}

/** What readers that wait cost: each with its own mailbox and its own connection. */
export async function measureMemory(bench: Bench): Promise<readonly Figure[]> {
  const samples: Sample[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    bench.progress(`start ${start + 1} of ${STARTS}`);
    samples.push(await sampleOnce(bench));
  }
  const readers = bench.waitingReaders;
  return [
    figureOf(
      "resident memory, no reader",
      "MiB",
      samples.map(({ idleKib }) => idleKib / 1024),
    ),
    figureOf(
      `resident memory, ${readers} readers wait`,
      "MiB",
      samples.map(({ waitingKib }) => waitingKib / 1024),
    ),
    figureOf(
      "growth a waiting reader",
      "KiB",
      samples.map(({ idleKib, waitingKib }) => (waitingKib - idleKib) / readers),
    ),
    figureOf(
      `one message for each of ${readers} readers at once, until the last has it`,
      "ms",
      samples.map(({ wakeAllMs }) => wakeAllMs),
    ),
  ];
}

async function sampleOnce(bench: Bench): Promise<Sample> {
  const directory = freshDirectory(bench);
  const settings = { directory, cores: bench.cores };
  await using relay = await ServerProcess.start("relay", relayArgs(directory), settings);
  const ids = Array.from({ length: bench.waitingReaders }, (_, index) => `reader-${index}@bench`);
  await registerAgents(relay, { ids });
  await sleep(SETTLE_MS);
  const idleKib = residentKibOf(relay.pid);
  using connections = await openConnections(relay.port, ids.length);
  const waiting = connections.map((connection, index) =>
    connection.request(getRequest(`/mailbox/${ids[index]}?wait_ms=${WAIT_MS}`)),
  );
  await sleep(SETTLE_MS);
  const waitingKib = residentKibOf(relay.pid);
  const start = performance.now();
  await sendToAll(relay, ids);
  for (const answer of await Promise.all(waiting)) {
    const { messages } = jsonOf(answer) as { readonly messages: readonly unknown[] };
    if (messages.length !== 1) throw new Error("a reader that waited was answered without its message");
  }
  return { idleKib, waitingKib, wakeAllMs: performance.now() - start };
}

/** One message to each, from the next of them. */
export async function sendToAll(relay: ServerProcess, ids: readonly string[]): Promise<void> {
  const messages = ids.map((to, index) => ({ ...messageTo(0), to, from: ids[(index + 1) % ids.length] }));
  using connections = await openConnections(relay.port, Math.ceil(messages.length / BATCH_MAX));
  await Promise.all(
    connections.map(async (connection, index) => {
      const some = messages.slice(index * BATCH_MAX, (index + 1) * BATCH_MAX);
      jsonOf(await connection.request(postRequest("/messages/batch", { messages: some })));
    }),
  );
}
