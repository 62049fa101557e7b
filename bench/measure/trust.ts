import { startKeyedRelay, startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { assertOk } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { AGENTS, messageTo } from "../load/messages.ts";
import type { Bench } from "./bench.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave, type Runner } from "./rounds.ts";

/** What keys and capabilities cost: the same requests on an open relay, with keys, and with both. */
export async function measureTrust(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const open = servers.use(await startRelay(bench));
    const keyed = await startKeyedRelay(bench, { capabilities: false });
    const keyedRelay = servers.use(keyed.relay);
    const gated = await startKeyedRelay(bench, { capabilities: true });
    const gatedRelay = servers.use(gated.relay);
    return [
      { name: "open", server: open, cycle: askCycle() },
      { name: "a key for each agent", server: keyedRelay, cycle: askCycle(keyed.keys) },
      { name: "keys and capabilities", server: gatedRelay, cycle: askCycle(gated.keys) },
    ];
  });
  const [opened = [], withKeys = [], withBoth = []] = samples.map((sample) => sample.perSecond);
  return [
    ratioOf("with keys / open", withKeys, opened, { must: { atLeast: 0.7 } }),
    ratioOf("with keys and capabilities / open", withBoth, opened, { must: { atLeast: 0.48 } }),
    ...rateFigures(samples),
  ];
}

/** One request for work a cycle, to each agent in turn from the one after it. */
function askCycle(keys?: readonly string[]): Runner["cycle"] {
  const requests = Array.from({ length: AGENTS }, (_, index) =>
    postRequest("/messages", messageTo(index, { type: "request" }), keys?.[(index + 1) % AGENTS]),
  );
  return async (connection, number) => {
    assertOk(await connection.request(requests[number % AGENTS] ?? Buffer.alloc(0)));
  };
}
