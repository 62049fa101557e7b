import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer } from "node:net";
import { StreamResponse } from "@a2a-js/sdk";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import {
  type A2aOperation,
  type A2aStreamResponse,
  LIMITS,
  RelayError,
  STREAM_RESUME_EXTENSION,
  V1_DIALECT,
} from "@a2a-relay/protocol";
import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { A2aEvent } from "../../core/a2a/a2a-streams.ts";
import { readA2aTenant } from "../../core/agents/card-interfaces.ts";
import type { A2aHandler } from "../a2a/a2a-handler.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { GrpcA2aCall, headerOf, type IncomingCall, namedExtensions } from "./grpc-call.ts";
import { STREAM_METHODS, UNARY_METHODS, type UnaryMethod } from "./grpc-methods.ts";
import { toGrpcStatus } from "./grpc-status.ts";

export interface GrpcServerParts {
  readonly handler: A2aHandler;
  readonly gateway: Gateway;
  readonly log: { error(about: Readonly<Record<string, unknown>>, text: string): void };
}

export interface GrpcServerSettings {
  readonly host: string;
  readonly port: number;
  /** The relay ends a stream whose reader takes nothing for so long. */
  readonly streamStallMs: number;
  readonly drainMs: number;
  /** Open connections; `LIMITS.grpcConnectionsMax` by default. */
  readonly connectionsMax?: number;
  /** How long a connection stays open without a call; `LIMITS.grpcIdleMsMax` by default. */
  readonly idleMs?: number;
}

/** The server pings a silent connection and closes it when no answer comes in time. */
const KEEPALIVE = { "grpc.keepalive_time_ms": 60_000, "grpc.keepalive_timeout_ms": 20_000 };

export interface RunningGrpc extends AsyncDisposable {
  readonly port: number;
}

/** The gRPC binding of A2A 1.0; its tenant field names the agent. Stopping the gateway ends calls that wait. */
export async function startGrpc(parts: GrpcServerParts, settings: GrpcServerSettings): Promise<RunningGrpc> {
  const server = new Server({
    ...KEEPALIVE,
    "grpc.max_receive_message_length": LIMITS.bodyBytesMax,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": LIMITS.grpcCallsOfConnectionMax,
    "grpc.max_connection_idle_ms": settings.idleMs ?? LIMITS.grpcIdleMsMax,
  });
  server.addService(A2AService, serviceOf(new GrpcBinding(parts, settings)));
  const listener = await listen(server, settings);
  return {
    port: (listener.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(listener, "close");
      listener.close();
      await shutDown(server, settings.drainMs);
      await closed;
    },
  };
}

/** Reads gRPC calls, passes them to the A2A handler and writes its answers. */
class GrpcBinding {
  readonly #parts: GrpcServerParts;
  readonly #settings: GrpcServerSettings;

  constructor(parts: GrpcServerParts, settings: GrpcServerSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  async answer(
    operation: A2aOperation,
    request: unknown,
    call: IncomingCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    const { result = {} } = await this.#handle(operation, request, call);
    return V1_DIALECT.writeResult(operation, result) as Readonly<Record<string, unknown>>;
  }

  async stream(
    operation: A2aOperation,
    request: unknown,
    call: ServerWritableStream<never, unknown>,
  ): Promise<void> {
    const { pages } = await this.#handle(operation, request, call);
    if (pages === undefined) throw new RelayError("internal", "the handler gave no stream");
    const hasIds = namedExtensions(call).includes(STREAM_RESUME_EXTENSION);
    let isWhole = false;
    for await (const { events } of pages) {
      for (const each of events) {
        isWhole = each.isFinal;
        const event = V1_DIALECT.writeEvent(hasIds ? withId(each) : each.event, each);
        if (!call.write(StreamResponse.fromJSON(event))) await this.#drained(call);
      }
      if (call.cancelled) return;
    }
    // Without an error the caller would take the end of the stream for the end of the task.
    if (!isWhole && this.#parts.gateway.stopping.aborted) {
      throw new RelayError("unavailable", "the relay is stopping; subscribe again in a moment");
    }
  }

  /** Writes the error of a call. Never throws, so that a failed call does not end the others. */
  refuse(reason: unknown, method: string, write: (status: StatusObject) => unknown): void {
    try {
      write(this.#refusalOf(reason, method));
    } catch (cause) {
      this.#parts.log.error({ err: cause, method }, "a refusal could not be written");
    }
  }

  /** Logs an internal error; the caller does not see its text. */
  #refusalOf(reason: unknown, method: string): StatusObject {
    const error = RelayError.from(reason);
    if (error.code === "internal")
      this.#parts.log.error({ err: error.cause ?? error, method }, "internal error");
    return toGrpcStatus(error, new Metadata());
  }

  async #handle(
    operation: A2aOperation,
    request: unknown,
    call: IncomingCall,
  ): ReturnType<A2aHandler["handle"]> {
    const { gateway, handler } = this.#parts;
    const { tenant, agentName } = readA2aTenant((request as { readonly tenant?: unknown }).tenant);
    const credential = headerOf(call, "authorization");
    const principal = await gateway.admit({ credential, tenant, transport: "grpc" });
    const { tenant: _, ...params } = V1_DIALECT.readParams(operation, request);
    const context = { principal, agentName, stopping: gateway.stopping };
    return handler.handle(operation, params, new GrpcA2aCall(call, context));
  }

  /** Rejects when the reader takes nothing for the stall time. */
  #drained(call: ServerWritableStream<never, unknown>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => reject(new RelayError("unavailable", "the stream was not read in time; subscribe again")),
      this.#settings.streamStallMs,
    );
    const done = (): void => resolve();
    call.once("drain", done).once("cancelled", done).once("close", done);
    return promise.finally(() => {
      clearTimeout(timer);
      call.off("drain", done).off("cancelled", done).off("close", done);
    });
  }
}

function serviceOf(binding: GrpcBinding): UntypedServiceImplementation {
  const service: UntypedServiceImplementation = {};
  for (const name of Object.keys(UNARY_METHODS) as (keyof typeof UNARY_METHODS)[]) {
    const answer: handleUnaryCall<never, unknown> = (call, callback) => {
      void answerOnce(binding, name, call, callback);
    };
    service[name] = answer as UntypedHandleCall;
  }
  for (const name of Object.keys(STREAM_METHODS) as (keyof typeof STREAM_METHODS)[]) {
    const stream: handleServerStreamingCall<never, unknown> = (call) => {
      void answerStream(binding, name, call);
    };
    service[name] = stream as UntypedHandleCall;
  }
  return service;
}

/** Never rejects. */
async function answerOnce(
  binding: GrpcBinding,
  name: keyof typeof UNARY_METHODS,
  call: ServerUnaryCall<never, unknown>,
  callback: sendUnaryData<unknown>,
): Promise<void> {
  const method: UnaryMethod = UNARY_METHODS[name];
  try {
    const json = await binding.answer(method.operation, method.request.toJSON(call.request), call);
    callback(null, method.result?.fromJSON(json) ?? {});
  } catch (reason) {
    binding.refuse(reason, name, callback);
  }
}

/** Never rejects. */
async function answerStream(
  binding: GrpcBinding,
  name: keyof typeof STREAM_METHODS,
  call: ServerWritableStream<never, unknown>,
): Promise<void> {
  const { operation, request } = STREAM_METHODS[name];
  try {
    await binding.stream(operation, request.toJSON(call.request), call);
    call.end();
  } catch (reason) {
    binding.refuse(reason, name, (status) => call.emit("error", status));
  }
}

/** gRPC has no event ids, so callers that name the extension find them in the metadata. */
function withId({ n, event }: A2aEvent): A2aStreamResponse {
  const entries = Object.entries(event).map(([member, value]) => {
    const { metadata, ...rest } = value as { readonly metadata?: object };
    return [member, { ...rest, metadata: { ...metadata, [STREAM_RESUME_EXTENSION]: n } }] as const;
  });
  return Object.fromEntries(entries);
}

/** Listens itself, because the library does not limit connections. */
function listen(server: Server, settings: GrpcServerSettings): Promise<NetServer> {
  const { host, port, connectionsMax = LIMITS.grpcConnectionsMax } = settings;
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createServer({ noDelay: true }, (socket) => injector.injectConnection(socket));
  listener.maxConnections = connectionsMax;
  return new Promise((resolve, reject) => {
    listener.once("error", (cause) => {
      const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
      const why = `cannot listen for gRPC on ${address}: ${cause.message}; choose another port with --grpc-port`;
      reject(new RelayError("unavailable", why, { cause }));
    });
    listener.listen({ host, port }, () => resolve(listener));
  });
}

/** Lets calls under way finish, and ends the rest after `drainMs`. */
function shutDown(server: Server, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.forceShutdown(), drainMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
