import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import {
  aNewAgent,
  aNewMessage,
  aNewTask,
  anEvent,
  commit,
  deliveryOf,
  idsOf,
  lease,
  newId,
  readIds,
  settle,
  TENANT,
  ZHIWEI,
} from "../../../testing/store-builders.ts";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { withConnection } from "./database.ts";
import { openPostgresStore } from "./postgres-relay-store.ts";

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

/** Writes, reads, leases and settles records of every kind that has a table of versioned rows. */
async function useStore(store: RelayStore): Promise<void> {
  const message = aNewMessage({ kind: "request", taskId: newId("task") });
  const task = aNewTask({ id: message.taskId ?? "", messageId: message.id });
  const agent = aNewAgent({ id: newId("智能体") as AgentId });
  await commit(store, {
    agents: [agent],
    messages: [message],
    deliveries: [deliveryOf(message)],
    tasks: [task],
    events: [anEvent({ messageId: message.id })],
  });
  assert.deepEqual((await store.messages.get(TENANT, [message.id]))[0], message);
  assert.equal((await store.agents.get(TENANT, agent.id))?.agent.id, agent.id);
  assert.equal((await store.tasks.get(TENANT, [task.id]))[0]?.version, 1);
  assert.deepEqual(await readIds(store), [message.id]);
  assert.deepEqual(idsOf(await lease(store)), [message.id]);
  await settle(store, message.id);
  assert.equal((await store.journal.ofMessages(TENANT, [message.id])).length, 2);
  assert.equal((await store.deliveries.openOfAgent(TENANT, ZHIWEI, 10)).length, 0);
}

describe("a relay that runs while the schema of its PostgreSQL database gets new columns", () => {
  it("goes on, with every connection that it had before", async () => {
    const options = { url: server.url, poolMax: 4, schema: server.newSchema() };
    await using store = await openPostgresStore(options);
    await useStore(store);
    await Promise.all([1, 2, 3, 4].map(() => store.agents.get(TENANT, ZHIWEI)));
    await withConnection(options, async (client) => {
      const { rows } = await client.query<{ readonly name: string }>(
        "select tablename as name from pg_tables where schemaname = current_schema()",
      );
      for (const { name } of rows) await client.query(`alter table ${name} add column 新的 text`);
    });
    await useStore(store);
    await useStore(store);
  });
});
