import { after, before } from "node:test";
import { alternating } from "../../../testing/alternating.ts";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { describeRelayStore } from "../../../testing/relay-store.contract.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { type PostgresOptions, withConnection } from "./database.ts";
import { openPostgresStore } from "./postgres-relay-store.ts";

/** As after the migrations. Emptying small tables is ten times faster than making them. */
const EMPTY = `do $$
declare name text;
begin
  for name in
    select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
      and not relispartition and relname not in ('schema_version', 'seal_horizon', 'tenant')
  loop execute format('delete from %I', name); end loop;
  for name in select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'S'
  loop execute format('alter sequence %I restart', name); end loop;
  delete from tenant where id <> 'default';
  update tenant set capabilities = 0, version = 1;
end $$`;

let server: TestServer;
const free: string[] = [];

before(async () => {
  server = await startPostgres();
});

after(() => server[Symbol.asyncDispose]());

/** A store on an empty schema, which a later case gets again. */
async function open(openOn: (options: PostgresOptions) => Promise<RelayStore>): Promise<RelayStore> {
  const schema = free.pop() ?? server.newSchema();
  const options = { url: server.url, poolMax: 4, schema };
  const store = await openOn(options);
  return {
    ...store,
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      await withConnection(options, (client) => client.query(EMPTY));
      free.push(schema);
    },
  };
}

describeRelayStore("PostgreSQL", () => open(openPostgresStore));

describeRelayStore("PostgreSQL, two relays, one of them with row-level security", () =>
  open(async (options) =>
    alternating(
      await openPostgresStore(options),
      await openPostgresStore({ ...options, isRowSecured: true }),
    ),
  ),
);
