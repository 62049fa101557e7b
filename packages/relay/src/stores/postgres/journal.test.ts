import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { eventually } from "../../../../../test/support/eventually.ts";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { aNewMessage, aSend, commit, TENANT } from "../../../testing/store-builders.ts";
import { openPostgresStore } from "./postgres-relay-store.ts";

const ALL = { tenant: TENANT, afterSeq: 0, type: undefined, agentId: undefined, threadId: undefined };

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

/** A transaction of another relay, which has a number already and is open. */
async function openTransaction(schema: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url, options: `-c search_path=${schema}` });
  client.on("error", () => undefined);
  await client.connect();
  await client.query("begin");
  await client.query("select pg_current_xact_id()");
  return client;
}

describe("the journal of several relays", () => {
  it("has the events of a message in their order, however old the transactions are that wrote them", async () => {
    const schema = server.newSchema();
    await using store = await openPostgresStore({ url: server.url, poolMax: 4, schema });
    const worker = await openTransaction(schema);
    const slow = await openTransaction(schema);
    const message = aNewMessage();
    await commit(store, aSend(message));
    await worker.query(
      `insert into event (tenant, type, at_ms, actor, message_id, data_json)
      values ($1, 'message.leased', 0, 'lulu', $2, '{}')`,
      [TENANT, message.id],
    );
    await worker.query("commit");
    const read = async (): Promise<readonly string[]> => {
      const { events } = await store.journal.events({ ...ALL, limit: 100, scanRowsMax: 100 });
      return events.map(({ type }) => type);
    };
    const whileOneIsOpen = await read();
    await slow.query("rollback");
    const types = ["message.accepted", "message.leased"];
    assert.deepEqual([whileOneIsOpen, await read()], [types, types]);
    await Promise.all([worker.end(), slow.end()]);
  });

  it("seals what other relays have written in more than one step", async () => {
    const schema = server.newSchema();
    await using store = await openPostgresStore({ url: server.url, poolMax: 4, schema });
    const other = await openTransaction(schema);
    await other.query(
      `insert into event (tenant, type, at_ms, actor, data_json)
      select $1, 'message.leased', n, 'lulu', '{}' from generate_series(1, 4500) n`,
      [TENANT],
    );
    await other.query("commit");
    await other.end();
    assert.equal((await store.journal.chain(TENANT)).head.seq, 4_500);
    await commit(store, aSend());
    const { events } = await store.journal.events({ ...ALL, afterSeq: 4_499, limit: 9, scanRowsMax: 9 });
    assert.deepEqual(
      events.map(({ seq, atMs }) => [seq, atMs === 4_500]),
      [
        [4_500, true],
        [4_501, false],
      ],
    );
  });

  it("is sealed soon though no reader asks, also what a killed relay has left", async () => {
    const schema = server.newSchema();
    await using store = await openPostgresStore({ url: server.url, poolMax: 4, schema });
    const killed = await openTransaction(schema);
    await killed.query(
      "insert into event (tenant, type, at_ms, actor, data_json) values ($1, 'message.leased', 0, 'lulu', '{}')",
      [TENANT],
    );
    await killed.query("commit");
    const sealed = async (): Promise<number> => {
      const { rows } = await killed.query<{ count: number }>("select count(*)::int as count from event_seal");
      return rows[0]?.count ?? 0;
    };
    await using beside = await openPostgresStore({ url: server.url, poolMax: 4, schema });
    await eventually(sealed, (count) => count === 1);
    await commit(store, aSend());
    await eventually(sealed, (count) => count === 2);
    assert.equal((await beside.journal.chain(TENANT)).head.seq, 2);
    await killed.end();
  });
});
