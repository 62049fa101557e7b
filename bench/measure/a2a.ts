import { startBareHttp, startRelay, startSdkExpress } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { assertOk, type Connection } from "../load/connection.ts";
import { AGENTS, a2aSends } from "../load/messages.ts";
import type { Bench } from "./bench.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave, type Runner } from "./rounds.ts";
import { sendCycle } from "./send.ts";

/** `SendMessage` that does not wait: on disk with the relay, in memory with the SDK's own server. */
export async function measureA2a(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const bare = servers.use(await startBareHttp(bench));
    const sdk = servers.use(await startSdkExpress(bench));
    const relay = servers.use(await startRelay(bench));
    return [
      { name: "bare node:http echo", server: bare, cycle: sendCycle() },
      { name: "@a2a-js/sdk on Express, in memory", server: sdk, cycle: a2aCycle(() => "/") },
      { name: "relay, durable", server: relay, cycle: a2aCycle((agent) => `/agents/${agent}/a2a`) },
    ];
  });
  const [echoes, inMemory, durable] = samples.map((sample) => sample.perSecond);
  return [
    ratioOf("relay / @a2a-js/sdk on Express", durable ?? [], inMemory ?? [], {
      must: { atLeast: 0.95 },
      aim: { atLeast: 3 },
    }),
    ratioOf("relay / bare node:http", durable ?? [], echoes ?? []),
    ...rateFigures(samples),
  ];
}

function a2aCycle(pathOf: (agent: string) => string): Runner["cycle"] {
  const requests = a2aSends(pathOf);
  return async (connection: Connection, number: number) => {
    const answer = await connection.request(requests[number % AGENTS] ?? Buffer.alloc(0));
    assertOk(answer);
    if (!answer.body.includes('"result"'))
      throw new Error(`a send was refused: ${answer.body.toString("utf8")}`);
  };
}
