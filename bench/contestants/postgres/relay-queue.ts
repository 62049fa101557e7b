import { randomFillSync, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { LeaseResponse } from "@a2a-relay/protocol";
import { startBackgroundWork } from "../../../packages/relay/src/background/background-work.ts";
import { loadConfig } from "../../../packages/relay/src/config/load-config.ts";
import type { RelayConfig } from "../../../packages/relay/src/config/relay-config.ts";
import { rootOperator } from "../../../packages/relay/src/core/access/principal.ts";
import { TimeOrderedIds } from "../../../packages/relay/src/core/mechanisms/time-ordered-ids.ts";
import type { Clock } from "../../../packages/relay/src/core/ports/clock.ts";
import type { Randomness } from "../../../packages/relay/src/core/ports/ids.ts";
import { createCore, type RelayCore } from "../../../packages/relay/src/core/relay-core.ts";
import { EgressPolicy } from "../../../packages/relay/src/core/rules/egress-policy.ts";
import { connectionOptions } from "../../../packages/relay/src/server/migrate-database.ts";
import { loadIdentity } from "../../../packages/relay/src/server/relay-identity.ts";
import { AnchorFile } from "../../../packages/relay/src/stores/archive/anchor-file.ts";
import { JsonlArchive } from "../../../packages/relay/src/stores/archive/jsonl-archive.ts";
import { openPostgresStore } from "../../../packages/relay/src/stores/postgres/postgres-relay-store.ts";
import { GuardedOutbound } from "../../../packages/relay/src/transports/egress/guarded-outbound.ts";
import { HttpOutbound } from "../../../packages/relay/src/transports/outbound/http-outbound.ts";
import { agentId, AGENTS, messageTo } from "../../load/messages.ts";
import type { PostgresQueue } from "./postgres-queue.ts";
import { SEALING } from "./sealing.ts";

const CALLER = rootOperator();
const LEASE_MS = 60_000;

/** The relay without its wires: the core on its store, with all background work. */
export async function openRelay(url: string, directory: string): Promise<PostgresQueue> {
  const core = await openCore(loadConfig({ flags: { database: url, data: directory, ...SEALING } }));
  for (let index = 0; index < AGENTS; index += 1) {
    await core.agents.register(CALLER, { agent_id: agentId(index) });
  }
  const { messages, mailboxes } = core;
  /** One for each that was sent. For a moment the other relay may have locked all that the mailbox has. */
  const lease = async (agent: string): Promise<LeaseResponse["messages"][number]> => {
    const { messages: leased } = await mailboxes.lease(CALLER, agent, { max: 1, lease_ms: LEASE_MS });
    return leased[0] ?? lease(agent);
  };
  return {
    send: async (number) => void (await messages.send(CALLER, messageTo(number))),
    roundTrip: async (number) => {
      await messages.send(CALLER, messageTo(number));
      const { message_id, lease: held } = await lease(agentId(number));
      const leases = [{ message_id, lease_id: held.id }];
      const { acknowledged } = await mailboxes.ack(CALLER, agentId(number), { leases });
      if (acknowledged !== 1)
        throw new Error(`message ${message_id} was leased and could not be acknowledged`);
    },
  };
}

async function openCore(config: RelayConfig): Promise<RelayCore> {
  const { database, databasePoolMax: poolMax } = config;
  const url = database?.kind === "postgres" ? database.url : "";
  mkdirSync(config.anchorDirectory);
  const store = await openPostgresStore({ ...connectionOptions(url, config), poolMax });
  const clock: Clock = { nowMs: () => Date.now(), nextTurn: () => nextTurn() };
  const randomness: Randomness = (bytes) => void randomFillSync(bytes);
  const egress = new EgressPolicy(config.egressAllow);
  const settings = { ...config, publicUrl: () => "http://127.0.0.1", version: "bench", userAgent: "bench" };
  const core = createCore(
    {
      store,
      owner: randomUUID(),
      clock,
      ids: new TimeOrderedIds(clock, randomness),
      randomness,
      identity: await loadIdentity(store.keys, config.dataDirectory),
      archive: new JsonlArchive(join(config.dataDirectory, "archive"), clock),
      anchors: new AnchorFile(config.anchorDirectory),
      egress,
      outbound: new HttpOutbound(new GuardedOutbound({ policy: egress }), clock, settings),
    },
    settings,
  );
  startBackgroundWork(core, config, fail);
  return core;
}

/** A relay whose background work fails is not measured: this ends the process. */
function fail(reason: unknown): never {
  throw reason;
}
