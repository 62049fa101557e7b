import { after, before } from "node:test";
import { alternating } from "../../../testing/alternating.ts";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { describeRelayStore } from "../../../testing/relay-store.contract.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openPostgresStore } from "./postgres-relay-store.ts";

let server: TestServer;

before(async () => {
  server = await startPostgres();
});

after(() => server[Symbol.asyncDispose]());

function open(schema: string, isRowSecured = false): Promise<RelayStore> {
  return openPostgresStore({ url: server.url, poolMax: 4, schema, isRowSecured });
}

describeRelayStore("PostgreSQL", () => open(server.newSchema()));

describeRelayStore("PostgreSQL, two relays, one of them with row-level security", async () => {
  const schema = server.newSchema();
  return alternating(await open(schema), await open(schema, true));
});
