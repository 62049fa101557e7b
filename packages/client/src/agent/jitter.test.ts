import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { operations, RelayError } from "@a2a-relay/protocol";
import { AGENT, openChannel, page, take } from "../../testing/open-channel.ts";
import { WireServer } from "../../testing/wire-server.ts";
import { WireSocket } from "../../testing/wire-socket.ts";
import { BackgroundErrors } from "./background-errors.ts";
import { HttpExchange } from "../http/http-exchange.ts";
import { LeaseRenewal } from "./lease-renewal.ts";
import { MessageIntake } from "./message-intake.ts";
import { fillAgentOptions } from "./relay-agent-options.ts";
import { fillClientOptions } from "../http/relay-client-options.ts";
import { RelayClient } from "../client/relay-client.ts";
import { ResumedStream } from "../live/resumed-stream.ts";

/** Nothing else here waits for as long, nor for half of it. */
const CEILING_MS = 46;
const CHANCES = [
  [0, 0],
  [0.5, CEILING_MS / 2],
  [1, CEILING_MS],
] as const;

type Random = () => number;

/** Which of the waits that chance may choose were begun meanwhile. */
async function waitsDuring(work: () => Promise<void>): Promise<readonly number[]> {
  const timer = mock.method(globalThis, "setTimeout");
  try {
    await work();
    const known = CHANCES.map(([, waitMs]) => waitMs as unknown);
    return timer.mock.calls.map((call) => call.arguments[1] as number).filter((ms) => known.includes(ms));
  } finally {
    timer.mock.restore();
  }
}

async function reopenStream(random: Random): Promise<void> {
  await using server = await WireServer.start(() =>
    server.requests.length === 1
      ? "reset"
      : {
          stream: (write) => {
            write('id: 10\ndata: "知微你好"\n\n');
            return "silence";
          },
        },
  );
  const exchange = new HttpExchange(fillClientOptions({ url: server.url }));
  const parts = { exchange, delays: { firstMs: CEILING_MS, maxMs: CEILING_MS }, random };
  const stream = new ResumedStream({ operation: operations.journal.events, since: undefined }, parts, {});
  assert.equal((await stream.next())?.id, "10");
  stream.close();
}

async function reopenSocket(random: Random): Promise<void> {
  await using wire = await WireSocket.start({
    onOpen: (socket) => (wire.sockets.length === 1 ? socket.reset() : socket.say(page(1))),
  });
  const channel = await openChannel(wire, {}, { random, retryDelayMs: CEILING_MS });
  assert.deepEqual(await take(channel, 1), ["10"]);
  await channel.close();
}

/** Asks a source that refuses once, and ends when it is asked again. */
async function leaseAgain(random: Random): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  const options = fillAgentOptions({ url: "http://127.0.0.1:1", id: AGENT });
  const client = new RelayClient({ url: "http://127.0.0.1:1" });
  const errors = new BackgroundErrors(AGENT, () => undefined);
  let asked = 0;
  const source = {
    lease: () => {
      asked += 1;
      if (asked === 2) ended.abort();
      return Promise.reject(new RelayError("permission_denied", "not your mailbox"));
    },
    close: () => Promise.resolve(),
  };
  const intake = new MessageIntake({
    client,
    source,
    options,
    delays: { firstMs: CEILING_MS, maxMs: CEILING_MS },
    random,
    renewal: new LeaseRenewal({ client, agentId: AGENT, leaseMs: options.leaseMs, errors, signal }),
    errors,
    work: () => Promise.resolve(),
    register: () => Promise.resolve(),
    signal,
  });
  await intake.run();
  assert.equal(asked, 2);
}

for (const [what, comeBack] of [
  ["a stream that broke", reopenStream],
  ["a socket that broke", reopenSocket],
  ["an agent whose lease was refused", leaseAgain],
] as const) {
  describe(what, () => {
    for (const [chance, waitMs] of CHANCES) {
      it(`is tried again after ${waitMs} of ${CEILING_MS} ms where chance says ${chance}`, async () => {
        assert.deepEqual(await waitsDuring(() => comeBack(() => chance)), [waitMs]);
      });
    }
  });
}
