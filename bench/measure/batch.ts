import { startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { jsonOf } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { AGENTS, messageTo } from "../load/messages.ts";
import type { Bench } from "./bench.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave, type Runner } from "./rounds.ts";
import { sendCycle } from "./send.ts";

const BATCH_MESSAGES = 100;

/** Many messages in one request, beside one message a request, on the same relay. */
export async function measureBatch(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const relay = servers.use(await startRelay(bench));
    return [
      { name: "one message a request", server: relay, cycle: sendCycle() },
      {
        name: `${BATCH_MESSAGES} messages a request`,
        server: relay,
        cycle: batchCycle(BATCH_MESSAGES),
        messagesPerCycle: BATCH_MESSAGES,
      },
    ];
  });
  const [single, batched] = samples.map((sample) => sample.perSecond);
  return [
    ratioOf("batch / single", batched ?? [], single ?? [], { must: { atLeast: 1.45 } }),
    ...rateFigures(samples),
  ];
}

/** Batches that go to every agent in turn. */
export function batchCycle(messages: number): Runner["cycle"] {
  const requests = Array.from({ length: AGENTS }, (_, start) =>
    postRequest("/messages/batch", {
      messages: Array.from({ length: messages }, (_unused, index) => messageTo(start + index)),
    }),
  );
  return async (connection, number) => {
    const { results } = jsonOf(await connection.request(requests[number % AGENTS] ?? Buffer.alloc(0))) as {
      readonly results: readonly { readonly status: number }[];
    };
    const accepted = results.filter(({ status }) => status === 201).length;
    if (accepted !== messages)
      throw new Error(`only ${accepted} of ${messages} messages of a batch were accepted`);
  };
}
