import { randomFillSync } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import type { FastifyInstance } from "fastify";
import { type Logger, pino } from "pino";
import { startBackgroundWork } from "../background/background-work.ts";
import type { RelayConfig } from "../config/relay-config.ts";
import { type Authenticator, KeyAuthenticator } from "../core/access/authenticator.ts";
import { rootOperator } from "../core/access/principal.ts";
import type { Clock } from "../core/ports/clock.ts";
import { EgressPolicy } from "../core/rules/egress-policy.ts";
import type { Randomness } from "../core/ports/ids.ts";
import { TimeOrderedIds } from "../core/mechanisms/time-ordered-ids.ts";
import { createCore, type RelayCore } from "../core/relay-core.ts";
import { type Mailbox, TaskQueueMailbox } from "../core/queue/mailbox.ts";
import { AnchorFile } from "../stores/archive/anchor-file.ts";
import { JsonlArchive } from "../stores/archive/jsonl-archive.ts";
import type { RelayStore } from "../core/ports/relay-store.ts";
import { openSqliteStore } from "../stores/sqlite/sqlite-relay-store.ts";
import { A2aHandler } from "../transports/a2a/a2a-handler.ts";
import type { GrpcServerParts, RunningGrpc } from "../transports/grpc/grpc-server.ts";
import { GuardedOutbound } from "../transports/egress/guarded-outbound.ts";
import { createHttpServer } from "../transports/http/http-server.ts";
import { ReusedMemory } from "../transports/http/reused-memory.ts";
import { loadIdentity } from "./relay-identity.ts";
import { VERSION } from "./version.ts";

/** A relay that is up: what the CLI's `serve`, the tests and an embedding program hold. */
export interface RunningRelay extends AsyncDisposable {
  /** Where it listens, e.g. http://127.0.0.1:8080. */
  readonly url: string;
  /** Where it listens for gRPC, if it does. */
  readonly grpcPort?: number;
  /** The task queue of a tenant, the default one unless said otherwise, for a program that runs the relay itself. */
  mailbox(tenant?: string): Mailbox;
}

/** Parts that a test or an embedding program may bring itself. */
export interface RelayOverrides {
  readonly authenticator?: Authenticator;
  readonly clock?: Clock;
}

/** The process cannot know what is on disk after a failed fsync; whoever supervises it starts a new one. */
const EXIT_DISK_FAILED = 70;

const IDLE_LOOK_MS = 50;

const systemClock: Clock = { nowMs: () => Date.now(), nextTurn: () => nextTurn() };

/** The only place that knows every part. */
export async function startRelay(config: RelayConfig, overrides: RelayOverrides = {}): Promise<RunningRelay> {
  const log = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  const clock = overrides.clock ?? systemClock;
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openStore(config, log));
  const randomness: Randomness = (bytes) => void randomFillSync(bytes);
  const ids = new TimeOrderedIds(clock, randomness);
  const archive = new JsonlArchive(join(config.dataDirectory, "archive"), clock);
  const anchors = openAnchors(config);
  let url = "";
  let grpcPort: number | undefined;
  const publicUrl = (): string => config.publicUrl ?? url;
  const grpcUrl = (): string | undefined => grpcUrlOf(publicUrl(), grpcPort);
  const identity = loadIdentity(config.dataDirectory);
  const egress = new EgressPolicy(config.egressAllow);
  const outbound = stack.use(new GuardedOutbound({ policy: egress }));
  const parts = { store, clock, ids, randomness, identity, archive, anchors, egress, outbound };
  const core = createCore(parts, {
    ...config,
    publicUrl,
    grpcUrl,
    version: VERSION,
    userAgent: `a2a-relay/${VERSION}`,
    hasKeys: config.apiKey !== undefined,
  });
  const { refusals } = core;
  const stopping = new AbortController();
  const authenticator = overrides.authenticator ?? new KeyAuthenticator({ store, clock, refusals }, config);
  const app = createHttpServer(
    {
      core,
      authenticator,
      openDeliveries: (tenant) => store.countOpenByState(tenant),
      log,
      stopping: stopping.signal,
      memory: new ReusedMemory(),
    },
    { ...config, version: VERSION, publicUrl, hosts: knownHosts(config) },
  );
  const report = (reason: unknown): void => log.error({ err: reason }, "background work failed");
  // After the last request, before the store closes: nothing that was answered is left without an anchor.
  stack.defer(() => core.anchoring.keepAll().catch(report));
  const unused = new UnusedConnections(app.server);
  stack.defer(() => drain(app, unused, stopping, config.drainMs));
  url = await listen(app, config);
  const grpc = await listenForGrpc(config, { core, authenticator, log, stopping: stopping.signal });
  if (grpc !== undefined) grpcPort = stack.use(grpc).port;
  stack.use(startBackgroundWork(core, config, report));
  const running = stack.move();
  return {
    url,
    ...(grpcPort === undefined ? {} : { grpcPort }),
    mailbox: (tenant) => new TaskQueueMailbox(core.taskQueue, rootOperator(tenant), stopping.signal),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function openStore(config: RelayConfig, log: Logger): Promise<RelayStore> {
  openDirectory("data directory", config.dataDirectory, "--data");
  return openSqliteStore({
    path: join(config.dataDirectory, "relay.sqlite"),
    checkpointPages: config.checkpointPages,
    onFatal: (reason) => {
      log.fatal({ err: reason }, "the disk failed; stopping, because what is on it is not known");
      process.exit(EXIT_DISK_FAILED);
    },
  });
}

function openAnchors({ anchorDirectory }: RelayConfig): AnchorFile {
  openDirectory("anchor directory", anchorDirectory, "--anchor-dir");
  return new AnchorFile(anchorDirectory);
}

function openDirectory(what: string, path: string, flag: string): void {
  try {
    makeDirectory(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const sentence = `cannot create the ${what} ${path}: ${why}; choose another with ${flag}`;
    throw new RelayError("unavailable", sentence, { cause });
  }
}

/** Step by step from the first parent that exists: a recursive mkdir never returns for a path under /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/** Under local trust only known names may be used; a key needs no such help. */
function knownHosts(config: RelayConfig): readonly string[] | undefined {
  if (config.apiKey !== undefined) return undefined;
  const publicHost = config.publicUrl === undefined ? [] : [new URL(config.publicUrl).hostname];
  return [config.host.includes(":") ? `[${config.host}]` : config.host, ...publicHost];
}

async function listen(app: FastifyInstance, config: RelayConfig): Promise<string> {
  const { host, port } = config;
  try {
    await app.listen({ host, port });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === "EADDRINUSE"
        ? `port ${port} on ${host} is already in use; stop the other program or choose another with PORT or --port`
        : `cannot listen on ${host}:${port}: ${(cause as Error).message}`;
    throw new RelayError("unavailable", why, { cause });
  }
  const address = app.server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}

/** As cards name it: the host that the relay tells others, and the port where gRPC listens. */
function grpcUrlOf(publicUrl: string, grpcPort: number | undefined): string | undefined {
  return grpcPort === undefined ? undefined : `${new URL(publicUrl).hostname}:${grpcPort}`;
}

/** Only when it is asked for: few need it, and its libraries are heavy. */
async function listenForGrpc(
  config: RelayConfig,
  { core, ...parts }: Omit<GrpcServerParts, "handler" | "tenants"> & { readonly core: RelayCore },
): Promise<RunningGrpc | undefined> {
  const { grpcPort: port, host, streamStallMs, drainMs } = config;
  if (port === undefined) return undefined;
  const { startGrpc } = await import("../transports/grpc/grpc-server.ts");
  const handler = new A2aHandler(core);
  return startGrpc({ ...parts, handler, tenants: core.tenants }, { host, port, streamStallMs, drainMs });
}

/** Lets requests under way finish, answers whoever waits, and cuts the rest off when the time is over. */
async function drain(
  app: FastifyInstance,
  unused: UnusedConnections,
  stopping: AbortController,
  drainMs: number,
): Promise<void> {
  stopping.abort();
  const timer = setTimeout(() => app.server.closeAllConnections(), drainMs);
  // A kept connection is idle again once its last request was answered, so it is looked for more than once.
  const tidy = setInterval(() => app.server.closeIdleConnections(), IDLE_LOOK_MS);
  const closed = app.close();
  unused.close();
  await closed;
  clearInterval(tidy);
  clearTimeout(timer);
}

/** Connections that never carried a request: Node does not count them as idle, and clients open them ahead. */
class UnusedConnections {
  readonly #sockets = new Set<Socket>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    const used = ({ socket }: IncomingMessage): boolean => this.#sockets.delete(socket);
    server.on("request", used).on("upgrade", used);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
