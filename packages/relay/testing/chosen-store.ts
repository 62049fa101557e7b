import { after } from "node:test";
import { startPostgres, type TestServer } from "./postgres-server.ts";

let server: Promise<TestServer> | undefined;

/** Databases by the data directory of their relay: a relay that is started again finds its own. */
const databases = new Map<string, Promise<string>>();

/** The flags of a relay for the store that the tests run on: `TEST_STORE=postgres`, else SQLite. */
export async function storeFlags(dataDirectory: string): Promise<Readonly<Record<string, string>>> {
  // oxlint-disable-next-line node/no-process-env -- a switch of the person who runs the tests
  if (process.env["TEST_STORE"] !== "postgres") return {};
  server ??= startPostgres();
  const { newDatabase } = await server;
  const database = databases.get(dataDirectory) ?? newDatabase();
  databases.set(dataDirectory, database);
  return { database: await database, "database-rls": "on" };
}

// All files of a process share the server.
after(async () => (await server)?.[Symbol.asyncDispose]());
