import { startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { BATCH_MESSAGES, BatchFlow } from "../load/batch-flow.ts";
import type { Bench } from "./bench.ts";
import { roundTrip } from "./end-to-end.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave } from "./rounds.ts";

/** What Redis streams reach with an fsync for each write, from send to acknowledgement, on a machine like ours. */
const REDIS_PER_SECOND = 14_800;

/** Round trips over sockets, in batches, beside the same in three requests over HTTP. */
export async function measureSocket(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const relay = servers.use(await startRelay(bench));
    const aim = { atLeast: REDIS_PER_SECOND };
    const open = (sockets: 1 | 2) => () => BatchFlow.open(relay.port, sockets);
    return [
      { name: "send, lease, acknowledge over HTTP", server: relay, cycle: roundTrip() },
      { name: `one socket, batches of ${BATCH_MESSAGES}`, server: relay, open: open(1), aim },
      { name: "a sender's socket and a reader's", server: relay, open: open(2), aim },
    ];
  });
  const [http = [], one = [], two = []] = samples.map((sample) => sample.perSecond);
  return [
    ratioOf("one socket / HTTP", one, http),
    ratioOf("two sockets / HTTP", two, http),
    ...rateFigures(samples),
  ];
}
