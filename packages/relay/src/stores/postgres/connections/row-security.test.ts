import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startPostgres, type TestServer } from "../../../../testing/postgres-server.ts";
import { aSend, OTHER_TENANT, send, TENANT } from "../../../../testing/store-builders.ts";
import { Database, type PostgresOptions, withConnection } from "../database.ts";
import { openPostgresStore } from "../postgres-relay-store.ts";

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

function options(more: Partial<PostgresOptions> = {}): PostgresOptions {
  return { url: server.url, poolMax: 2, schema: server.newSchema(), isRowSecured: true, ...more };
}

describe("row-level security", () => {
  it("shows a statement that forgets the tenant only the rows of the caller's", async () => {
    const secured = options();
    await using store = await openPostgresStore(secured);
    await send(store, { id: "我们的" });
    await store.commit(aSend({ id: "他们的", tenant: OTHER_TENANT }));
    await using database = await Database.open(secured);
    for (const table of ["message", "message_key", "delivery", "any_delivery", "event", "mailbox"]) {
      const forgetful = `select distinct tenant from ${table}`;
      assert.deepEqual(await database.ofTenant(TENANT).rows(forgetful), [{ tenant: TENANT }], table);
      assert.equal((await database.rows(forgetful)).length, 2, table);
    }
    const deleted = await database.transaction((t) => t.run("delete from message_key"), TENANT);
    assert.equal(deleted, 1);
    assert.deepEqual((await store.messages.get(OTHER_TENANT, ["他们的"])).length, 1);
  });

  it("refuses to write a row of another tenant, and to read the partitions past the policy", async () => {
    const secured = options();
    await using store = await openPostgresStore(secured);
    await send(store);
    await using database = await Database.open(secured);
    const act = (sql: string): Promise<number> => database.transaction((t) => t.run(sql), TENANT);
    await assert.rejects(act(`insert into mailbox values ('${OTHER_TENANT}', 'a', 1)`), { code: "42501" });
    const { name } = (await database.row(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'message'::regclass limit 1",
    )) as { readonly name: string };
    await assert.rejects(act(`select 1 from ${name}`), { code: "42501" });
    await assert.rejects(act("select 1 from relay_identity"), { code: "42501" });
  });

  it("covers every table with a tenant", async () => {
    await using database = await Database.open(options());
    const rows = await database.rows(`
      select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and not c.relrowsecurity`);
    assert.deepEqual(rows, []);
  });

  it("says how to make its role when the relay may not use it", async () => {
    const owned = options();
    const role = `${owned.schema}_登录`;
    await withConnection(owned, async (client) => {
      await client.query(`create role "${role}" login password 'x'; create schema ${owned.schema}`);
      await client.query(`grant all on schema ${owned.schema} to "${role}"`);
    });
    const url = Object.assign(new URL(server.url), { username: role, password: "x" }).href;
    const how = `create role a2a_relay_tenant nologin; grant a2a_relay_tenant to "${role}";`;
    await assert.rejects(Database.open({ ...owned, url }), ({ message }: Error) => {
      assert.match(message, /^row-level security \(--database-rls\) needs the role a2a_relay_tenant; /);
      return message.endsWith(how);
    });
    await withConnection(owned, (client) => client.query(`grant a2a_relay_tenant to "${role}"`));
    const usage = `grant usage on schema ${owned.schema} to a2a_relay_tenant;`;
    await assert.rejects(Database.open({ ...owned, url }), ({ message }: Error) => message.endsWith(usage));
    await withConnection(owned, (client) => client.query(usage));
    await using database = await Database.open({ ...owned, url });
    assert.deepEqual(await database.ofTenant(TENANT).rows("select * from message"), []);
  });
});
