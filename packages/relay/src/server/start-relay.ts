import { randomFillSync, randomUUID } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { startBackgroundWork } from "../background/background-work.ts";
import type { RelayConfig } from "../config/relay-config.ts";
import { type Authenticator, KeyAuthenticator } from "../core/access/authenticator.ts";
import { rootOperator } from "../core/access/principal.ts";
import type { Clock } from "../core/ports/clock.ts";
import { EgressPolicy } from "../core/rules/egress-policy.ts";
import type { Randomness } from "../core/ports/ids.ts";
import { TimeOrderedIds } from "../core/mechanisms/time-ordered-ids.ts";
import { createCore, type RelayCore } from "../core/relay-core.ts";
import { type Mailbox, InProcessQueue } from "../core/queue/in-process-queue.ts";
import type { AnchorFile } from "../stores/archive/anchor-file.ts";
import { JsonlArchive } from "../stores/archive/jsonl-archive.ts";
import { A2aHandler } from "../transports/a2a/a2a-handler.ts";
import type { GrpcServerParts, RunningGrpc } from "../transports/grpc/grpc-server.ts";
import { Gateway } from "../transports/gateway/gateway.ts";
import { GuardedOutbound } from "../transports/egress/guarded-outbound.ts";
import { HttpOutbound } from "../transports/outbound/http-outbound.ts";
import { HttpMetrics } from "../transports/http/http-metrics.ts";
import { createHttpServer } from "../transports/http/http-server.ts";
import { anchorsOf, type ConnectedDatabase, openDirectory, openStore } from "./open-store.ts";
import { loadIdentity } from "./relay-identity.ts";
import { relayRoutes } from "./routes.ts";
import { VERSION } from "./version.ts";

/** A running relay, for the CLI's `serve`, tests and embedding programs. */
export interface RunningRelay extends AsyncDisposable {
  /** The address on which it listens, e.g. http://127.0.0.1:8080. */
  readonly url: string;
  /** Undefined without gRPC. */
  readonly grpcPort?: number;
  /** Undefined with SQLite. */
  readonly database?: ConnectedDatabase;
  /** The task queue of a tenant (the default one if omitted), for a program that embeds the relay. */
  mailbox(tenant?: string): Mailbox;
}

/** Parts that a test or an embedding program may replace. */
export interface RelayOverrides {
  readonly authenticator?: Authenticator;
  readonly clock?: Clock;
}

/** After a failed fsync the process cannot know what is on disk; its supervisor starts a new one. */
const EXIT_DISK_FAILED = 70;

const IDLE_CHECK_MS = 50;

/** Composes the relay. Only this folder knows every part. */
export async function startRelay(config: RelayConfig, overrides: RelayOverrides = {}): Promise<RunningRelay> {
  const log = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  await using stack = new AsyncDisposableStack();
  const onFatal = (reason: unknown): never => {
    log.fatal({ err: reason }, "the disk failed; stopping, because what is on it is not known");
    process.exit(EXIT_DISK_FAILED);
  };
  const store = stack.use(await openStore(config, { onFatal }));
  const clock = overrides.clock ?? { nowMs: () => store.nowMs?.() ?? Date.now(), nextTurn: () => nextTurn() };
  const randomness: Randomness = (bytes) => void randomFillSync(bytes);
  const ids = new TimeOrderedIds(clock, randomness);
  const archive = openArchive(config, clock);
  const anchors = openAnchors(config);
  let url = "";
  let grpc: RunningGrpc | undefined = undefined;
  const publicUrl = (): string => config.publicUrl ?? url;
  const grpcUrl = (): string | undefined => grpcUrlOf(publicUrl(), grpc?.port);
  const identity = await loadIdentity(store.keys, config.dataDirectory);
  const egress = new EgressPolicy(config.egressAllow);
  const client = stack.use(new GuardedOutbound({ policy: egress }));
  const userAgent = `a2a-relay/${VERSION}`;
  const outbound = new HttpOutbound(client, clock, { ...config, publicUrl, userAgent });
  const owner = randomUUID();
  const parts = { store, owner, clock, ids, randomness, identity, archive, anchors, egress, outbound };
  const core = createCore(parts, {
    ...config,
    publicUrl,
    grpcUrl,
    version: VERSION,
    hasKeys: config.apiKey !== undefined,
  });
  const { refusals } = core;
  const authenticator = overrides.authenticator ?? new KeyAuthenticator({ store, clock, refusals }, config);
  const gateway = new Gateway({ ...core, authenticator });
  const metrics = new HttpMetrics((tenant) => store.deliveries.countByState(tenant));
  const routes = relayRoutes(core, metrics, { ...config, version: VERSION, publicUrl });
  const app = createHttpServer({ routes, metrics, gateway, log }, { ...config, hosts: localHosts(config) });
  const report = (reason: unknown): void => log.error({ err: reason }, "background work failed");
  // After the last request, before the store closes: every answered request has its anchor.
  stack.defer(() => core.anchoring.keepAll().catch(report));
  const unused = new UnusedConnections(app.server);
  stack.defer(async () => {
    gateway.stop();
    await Promise.all([drain(app, unused, config.drainMs), grpc?.[Symbol.asyncDispose]()]);
  });
  url = await listen(app, config);
  grpc = await listenForGrpc(config, { core, gateway, log });
  stack.use(startBackgroundWork(core, config, report));
  const running = stack.move();
  return {
    url,
    ...(grpc === undefined ? {} : { grpcPort: grpc.port }),
    ...(store.database === undefined ? {} : { database: store.database }),
    mailbox: (tenant) => new InProcessQueue(core.taskQueue, rootOperator(tenant), gateway.stopping),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function openAnchors(config: RelayConfig): AnchorFile {
  openDirectory("anchor directory", config.anchorDirectory, "--anchor-dir");
  return anchorsOf(config);
}

function openArchive({ archiveDirectory }: RelayConfig, clock: Clock): JsonlArchive {
  openDirectory("archive directory", archiveDirectory, "--archive-dir");
  return new JsonlArchive(archiveDirectory, clock);
}

/** Without a key, callers must use one of these names; undefined allows any. */
function localHosts(config: RelayConfig): readonly string[] | undefined {
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

/** The gRPC address for cards: the public host and the port of gRPC. */
function grpcUrlOf(publicUrl: string, grpcPort: number | undefined): string | undefined {
  return grpcPort === undefined ? undefined : `${new URL(publicUrl).hostname}:${grpcPort}`;
}

/** Loads the heavy gRPC libraries only when a port is configured. */
async function listenForGrpc(
  config: RelayConfig,
  { core, ...parts }: Omit<GrpcServerParts, "handler"> & { readonly core: RelayCore },
): Promise<RunningGrpc | undefined> {
  const { grpcPort: port, host, streamStallMs, drainMs } = config;
  if (port === undefined) return undefined;
  const { startGrpc } = await import("../transports/grpc/grpc-server.ts");
  const handler = new A2aHandler(core);
  return startGrpc({ ...parts, handler }, { host, port, streamStallMs, drainMs });
}

/** Lets requests under way finish and closes all other connections after `drainMs`. */
async function drain(app: FastifyInstance, unused: UnusedConnections, drainMs: number): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), drainMs);
  // A connection becomes idle when its last request is answered, so the server checks repeatedly.
  const tidy = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS);
  const closed = app.close();
  unused.close();
  await closed;
  clearInterval(tidy);
  clearTimeout(timer);
}

/** Connections that never carried a request: Node does not count them as idle. */
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
