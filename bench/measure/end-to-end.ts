import { startReference, startRelay } from "../contestants/contestants.ts";
import { type Figure, ratioOf } from "../figure.ts";
import { assertOk, jsonOf } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { agentId, AGENTS, sendRequests } from "../load/messages.ts";
import type { Bench } from "./bench.ts";
import { rateFigures } from "./rate-figures.ts";
import { interleave, type Runner } from "./rounds.ts";

const LEASE_MS = 60_000;

/** The round trip of a message in three requests, one after the other: send, lease, acknowledge. */
export async function measureEndToEnd(bench: Bench): Promise<readonly Figure[]> {
  const samples = await interleave(bench, async (servers) => {
    const reference = servers.use(await startReference(bench));
    const relay = servers.use(await startRelay(bench));
    const cycle = roundTrip();
    return [
      { name: "Fastify + SQLite, one row a message", server: reference, cycle },
      { name: "relay", server: relay, cycle },
    ];
  });
  const [rows, roundTrips] = samples.map((sample) => sample.perSecond);
  return [
    ratioOf("relay / Fastify + SQLite", roundTrips ?? [], rows ?? [], { must: { atLeast: 0.42 } }),
    ...rateFigures(samples),
  ];
}

/** Sends to a mailbox, then leases from it and acknowledges what it got: as much as it put in. */
export function roundTrip(): Runner["cycle"] {
  const sends = sendRequests();
  const leases = leaseRequests();
  return async (connection, number) => {
    const agent = number % AGENTS;
    assertOk(await connection.request(sends[agent] ?? Buffer.alloc(0)));
    const leased = await connection.request(leases[agent] ?? Buffer.alloc(0));
    await acknowledge(connection, agent, leasedMessage(jsonOf(leased)));
  };
}

export function leaseRequests(): readonly Buffer[] {
  return Array.from({ length: AGENTS }, (_, index) =>
    postRequest(`/mailbox/${agentId(index)}/lease`, { max: 1, lease_ms: LEASE_MS }),
  );
}

export interface LeasedMessage {
  readonly message_id: string;
  readonly lease_id: string;
}

/** The one message of a lease that must have found one. */
export function leasedMessage(answer: unknown): LeasedMessage {
  const { messages } = answer as {
    readonly messages: readonly { readonly message_id: string; readonly lease: { readonly id: string } }[];
  };
  const [first] = messages;
  if (first === undefined) throw new Error("a lease found no message although one had been sent");
  return { message_id: first.message_id, lease_id: first.lease.id };
}

export async function acknowledge(
  connection: Parameters<Runner["cycle"]>[0],
  agent: number,
  message: LeasedMessage,
): Promise<void> {
  const answer = await connection.request(
    postRequest(`/mailbox/${agentId(agent)}/ack`, { leases: [message] }),
  );
  const { acknowledged } = jsonOf(answer) as { readonly acknowledged: number };
  if (acknowledged !== 1)
    throw new Error(`message ${message.message_id} was leased and could not be acknowledged`);
}
