import { freshDirectory, startRelay } from "../contestants/contestants.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, figureOf, ratioOf } from "../figure.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { assertOk, jsonOf, openConnections } from "../load/connection.ts";
import { getRequest } from "../load/http-request.ts";
import { agentId, AGENTS } from "../load/messages.ts";
import { batchCycle } from "./batch.ts";
import type { Bench } from "./bench.ts";
import { acknowledge, leasedMessage, leaseRequests } from "./end-to-end.ts";
import { type Runner, runRound } from "./rounds.ts";
import { sendCycle } from "./send.ts";

const FILL_BATCH = 100;
const FILL_CONNECTIONS = 4;
const READ_MESSAGES = 10;
/** Few, because they stay: the smallest store must not become a large one while it is measured. */
const CYCLES_PER_ROUND = 400;
const WARM_UP_ROUNDS = 2;

const VERBS = ["send", "read", "lease"] as const;
type Verb = (typeof VERBS)[number];

interface Store {
  readonly messages: number;
  readonly relay: ServerProcess;
  readonly costMicros: Record<Verb, number[]>;
}

/** The cost of a send, a read and a lease while the number of open deliveries grows. */
export async function measureGrowth(bench: Bench): Promise<readonly Figure[]> {
  await using stack = new AsyncDisposableStack();
  const stores: Store[] = [];
  for (const messages of bench.storedMessages) {
    const relay = stack.use(await startRelay(bench, freshDirectory(bench)));
    bench.progress(`storing ${count(messages)} messages`);
    await fill(relay, messages);
    stores.push({ messages, relay, costMicros: { send: [], read: [], lease: [] } });
  }
  for (let round = -WARM_UP_ROUNDS; round < bench.growthRounds; round += 1) {
    bench.progress(round < 0 ? "warming up" : `round ${round + 1} of ${bench.growthRounds}`);
    for (const store of round % 2 === 0 ? stores : stores.toReversed()) {
      const costs = await roundOf(store.relay, bench.connections);
      if (round >= 0) for (const verb of VERBS) store.costMicros[verb].push(costs[verb]);
    }
  }
  return VERBS.flatMap((verb) => growthFigures(verb, stores));
}

function growthFigures(verb: Verb, stores: readonly Store[]): readonly Figure[] {
  const [smallest] = stores;
  const largest = stores.at(-1);
  if (smallest === undefined || largest === undefined) return [];
  const span = `${count(smallest.messages)} to ${count(largest.messages)}`;
  return [
    ratioOf(`${verb}: cost growth from ${span}`, largest.costMicros[verb], smallest.costMicros[verb], {
      must: { atMost: 1.5 },
    }),
    ...stores.map(({ messages, costMicros }) =>
      figureOf(`${verb}, ${count(messages)} stored`, "µs", costMicros[verb]),
    ),
  ];
}

async function fill(relay: ServerProcess, messages: number): Promise<void> {
  using connections = await openConnections(relay.port, FILL_CONNECTIONS);
  await closedLoop(connections, { afterCycles: messages / FILL_BATCH }, batchCycle(FILL_BATCH));
}

/** As many leases, acknowledged at once, as sends: the backlog stays what it was. */
async function roundOf(relay: ServerProcess, connections: number): Promise<Record<Verb, number>> {
  const taken: { agent: number; message: ReturnType<typeof leasedMessage> }[] = [];
  const costOf = async (cycle: Runner["cycle"]): Promise<number> => {
    const runner = { name: "relay", server: relay, cycle };
    const { perSecond } = await runRound(runner, connections, { afterCycles: CYCLES_PER_ROUND });
    return 1_000_000 / perSecond;
  };
  const send = await costOf(sendCycle());
  const read = await costOf(readCycle());
  const leases = leaseRequests();
  const lease = await costOf(async (connection, number) => {
    const agent = number % AGENTS;
    const answer = await connection.request(leases[agent] ?? Buffer.alloc(0));
    taken.push({ agent, message: leasedMessage(jsonOf(answer)) });
  });
  using acknowledging = await openConnections(relay.port, 1);
  for (const connection of acknowledging) {
    for (const { agent, message } of taken) await acknowledge(connection, agent, message);
  }
  return { send, read, lease };
}

function readCycle(): Runner["cycle"] {
  const reads = Array.from({ length: AGENTS }, (_, index) =>
    getRequest(`/mailbox/${agentId(index)}?limit=${READ_MESSAGES}`),
  );
  return async (connection, number) =>
    assertOk(await connection.request(reads[number % AGENTS] ?? Buffer.alloc(0)));
}

function count(messages: number): string {
  return messages.toLocaleString("en");
}
