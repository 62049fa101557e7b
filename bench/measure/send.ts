import { startBareHttp, startReference, startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { assertOk, type Connection } from "../load/connection.ts";
import { AGENTS, KeyedSends, type Language, sendRequests } from "../load/messages.ts";
import type { Bench } from "./bench.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave, type Runner } from "./rounds.ts";

/** One send, answered when it is on disk, beside the least that could do so and beside HTTP alone. */
export async function measureSend(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const bare = servers.use(await startBareHttp(bench));
    const reference = servers.use(await startReference(bench));
    const relay = servers.use(await startRelay(bench));
    const cycle = sendCycle();
    return [
      { name: "bare node:http echo, not durable", server: bare, cycle },
      { name: "Fastify + SQLite, one row a message", server: reference, cycle },
      { name: "relay", server: relay, cycle },
      { name: "relay, with idempotency keys", server: relay, cycle: keyedSendCycle() },
      { name: "Fastify + SQLite, Chinese text", server: reference, cycle: sendCycle("chinese") },
      { name: "relay, Chinese text", server: relay, cycle: sendCycle("chinese") },
    ];
  });
  const [echoes, rows, sends, keyedSends, chineseRows, chineseSends] = samples.map(
    (sample) => sample.perSecond,
  );
  return [
    ratioOf("relay / Fastify + SQLite", sends ?? [], rows ?? [], {
      must: { atLeast: 0.5 },
      aim: { atLeast: 0.8 },
    }),
    ratioOf("relay / bare node:http", sends ?? [], echoes ?? [], { aim: { atLeast: 0.6 } }),
    ratioOf("relay with keys / Fastify + SQLite", keyedSends ?? [], rows ?? []),
    ratioOf("relay / Fastify + SQLite, Chinese text", chineseSends ?? [], chineseRows ?? []),
    ...rateFigures(samples),
  ];
}

/** The whole cycle of a connection is one send. */
export function sendCycle(language: Language = "english"): Runner["cycle"] {
  const requests = sendRequests(language);
  return async (connection: Connection, number: number) => {
    assertOk(await connection.request(requests[number % AGENTS] ?? Buffer.alloc(0)));
  };
}

function keyedSendCycle(): Runner["cycle"] {
  const sends = new KeyedSends();
  return async (connection, number) => assertOk(await connection.request(sends.next(number)));
}
