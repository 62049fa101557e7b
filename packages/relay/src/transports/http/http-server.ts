import type { Readable } from "node:stream";
import { HEARTBEAT_HEADER, LIMITS, RelayError, toErrorBody } from "@a2a-relay/protocol";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from "fastify";
import type { Authenticator } from "../../core/access/authenticator.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import { beginningWith, type EventStream } from "../streams/event-stream.ts";
import { Pulses } from "../streams/pulses.ts";
import { socketRoutes } from "../streams/socket-routes.ts";
import type { SocketHost } from "../streams/socket-session.ts";
import { writeEvents } from "../streams/sse-writer.ts";
import { streamRoutes } from "../streams/stream-routes.ts";
import { taskQueueRoutes } from "../task-queue/task-queue-routes.ts";
import { a2aRoutes } from "../a2a/a2a-routes.ts";
import { cardRoutes, type CardRouteSettings } from "../a2a/card-routes.ts";
import { agentRoutes } from "./agent-routes.ts";
import { capabilityRoutes } from "./capability-routes.ts";
import { fromServerError, RETRY_AFTER_S, statusOf, toWireAnswer } from "./http-error.ts";
import { HttpOpenCall, WaitingCalls } from "./http-call.ts";
import { HttpMetrics } from "./http-metrics.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import { keyRoutes } from "./key-routes.ts";
import {
  callOf,
  describeRoute,
  knowCaller,
  knowCallerIfShown,
  type KnownRequest,
  type Place,
  publicCallOf,
  secondsSince,
} from "./known-request.ts";
import { assertNoForeignLink, LocalGuard, type LocalGuardSettings } from "./local-guard.ts";
import { mailboxRoutes } from "./mailbox-routes.ts";
import { messageRoutes } from "./message-routes.ts";
import { operatorRoutes } from "./operator-routes.ts";
import { pushRoutes } from "./push-routes.ts";
import { readQuery } from "./query.ts";
import { endBody, jsonOfBody, readBody } from "./read-body.ts";
import { Piece, type ReusedMemory } from "./reused-memory.ts";
import type { Answer, Route, RouteFamily, SocketRoute } from "./route.ts";
import { serviceRoutes } from "./service-routes.ts";
import { mountSockets, upgradesTo } from "./socket-mount.ts";
import { taskRoutes } from "./task-routes.ts";
import { withoutTenant } from "./tenant-path.ts";
import { tenantRoutes } from "./tenant-routes.ts";

export interface HttpServerParts {
  readonly core: RelayCore;
  readonly authenticator: Authenticator;
  readonly openDeliveries: (tenant: string) => Promise<ReadonlyMap<string, number>>;
  readonly log: ErrorLog;
  /** Aborted when the relay stops: whoever waits is answered at once. */
  readonly stopping: AbortSignal;
  /** Where large bodies and answers are while they are on their way. */
  readonly memory: ReusedMemory;
}

/** Where errors go that a client must not see. */
export interface ErrorLog {
  error(about: Readonly<Record<string, unknown>>, text: string): void;
}

export interface HttpServerSettings extends CardRouteSettings, LocalGuardSettings {
  readonly version: string;
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
  /** How often a socket is asked whether it is still there. */
  readonly heartbeatMs: number;
  /** How long a reader of a stream may take for what it was sent. */
  readonly streamStallMs: number;
}

const JSON_TYPE = "application/json; charset=utf-8";
const A2A_JSON = "application/a2a+json";
const REQUEST_TIMEOUT_MS = 30_000;
const PARAM_CHARS_MAX = 1_000;

/** All routes, as data. */
export function nativeRoutes(
  core: RelayCore,
  { metrics }: { readonly metrics: HttpMetrics },
  about: Pick<HttpServerSettings, "version" | "publicUrl" | "cardDialect">,
): readonly Route[] {
  const others = [
    ...agentRoutes(core.agents),
    ...pushRoutes(core.pushes),
    ...messageRoutes(core.messages),
    ...inboxRoutes(core.inbox),
    ...mailboxRoutes(core.mailboxes),
    ...streamRoutes(core),
    ...socketRoutes(core),
    ...taskRoutes(core.tasks),
    ...operatorRoutes(core.journal, core.repairs),
    ...keyRoutes(core.keys),
    ...capabilityRoutes(core.capabilities),
    ...tenantRoutes(core.tenants),
    ...taskQueueRoutes(core.taskQueue),
    ...a2aRoutes(core),
    ...cardRoutes(core.a2aCards, about),
  ];
  return [...others, ...serviceRoutes({ ...core, metrics, about, others })];
}

/** Reads the wire, calls the core, writes the wire. No rules live here. */
export function createHttpServer(parts: HttpServerParts, settings: HttpServerSettings): FastifyInstance {
  const metrics = new HttpMetrics(parts.openDeliveries);
  const guard = new LocalGuard(settings);
  const { memory } = parts;
  const routes = nativeRoutes(parts.core, { metrics }, settings);
  const sendError = errorSenderOf(routes);
  const app = Fastify({
    // The limit is enforced while reading, where the rest can be drained.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // Every route is also there under /t/{tenant}.
    rewriteUrl: ({ url = "/" }) => withoutTenant(url),
    forceCloseConnections: "idle",
    // A request that comes while stopping is refused in our own words.
    return503OnClosing: false,
    // The guard says what is wrong with a missing host, in the words and the shape of every other error.
    http: { requireHostHeader: false, shouldUpgradeCallback: upgradesTo(routes) },
    frameworkErrors: (reason, request, reply) => void sendError(fromServerError(reason), request, reply),
    clientErrorHandler: (reason, socket) => {
      if (socket.writable) socket.write(toWireAnswer(reason));
      socket.destroySoon();
    },
  });
  app.server.maxConnections = LIMITS.connectionsMax;
  app.decorateRequest("startedAtMs", 0);
  readBodies(app, memory);
  guardRequests(app, guard, parts.stopping);
  app.setErrorHandler((reason, request, reply) => {
    const error = fromServerError(reason);
    if (error.code === "internal") {
      parts.log.error(
        { err: error.cause ?? error, method: request.method, url: request.url },
        "internal error",
      );
    }
    return sendError(error, request, reply);
  });
  app.setNotFoundHandler((request, reply) => {
    const what = `there is no ${request.method} ${request.url.split("?", 1)[0] ?? ""} here; GET /docs lists all`;
    metrics.route(request.method, "none").record(404, secondsSince((request as KnownRequest).startedAtMs));
    return sendError(new RelayError("not_found", what), request, reply);
  });
  const onFailure = (reason: unknown): void => parts.log.error({ err: reason }, "a stream failed");
  const { heartbeatMs, streamStallMs: stallMs } = settings;
  const pulses = new Pulses(heartbeatMs);
  const host = { meter: metrics.streams, pulses, heartbeatMs, stallMs, onFailure };
  const { authenticator, core } = parts;
  const waiting = new WaitingCalls(parts.stopping);
  const place: Place = { authenticator, tenants: core.tenants, waiting, metrics, host };
  for (const route of routes) if (route.socket !== true) mount(app, route, place);
  mountSockets(app, routes, place);
  return app;
}

function mount(app: FastifyInstance, route: Exclude<Route, SocketRoute>, place: Place): void {
  const { waiting, host } = place;
  const { url, know } = describeRoute(route, place.metrics);
  app.route({
    method: route.method,
    url,
    // MailboxMessage that nobody gets to see must not be marked as delivered.
    exposeHeadRoute: route.waits !== true,
    onRequest: [know, ...(route.drains === true ? [refuseForeignLinks] : []), ...knowing(route, place)],
    handler: async (request, reply) => {
      if (route.open === true) {
        const query = readQuery(route.query, request.query);
        const call = new HttpOpenCall(request, query, reply, waiting);
        return sendAnswer(await route.handle(call), request, reply);
      }
      if (route.open === "unless-keyed") {
        return sendAnswer(await route.handle(publicCallOf(route, request, reply, waiting)), request, reply);
      }
      const answer = await route.handle(callOf(route, request, reply, waiting));
      if (route.streams === "on request") vary(reply, "accept");
      if (answer.events === undefined) return sendAnswer(answer, request, reply);
      setHeaders(reply, answer.headers);
      return sendEvents(answer.events, request, reply, host);
    },
  });
}

function knowing(route: Route, place: Place): readonly onRequestHookHandler[] {
  if (route.open === true) return [];
  return [route.open === "unless-keyed" ? knowCallerIfShown(place) : knowCaller(place)];
}

const refuseForeignLinks: onRequestHookHandler = (request, _reply, done) => {
  try {
    assertNoForeignLink(request.headers);
    done();
  } catch (reason) {
    done(reason as Error);
  }
};

function sendAnswer(
  { status = 200, body, json, contentType, headers }: Answer,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  // Counted here and not in a hook after the answer: those cost every request two listeners.
  const { route, startedAtMs } = request as KnownRequest;
  route?.metrics.record(status, secondsSince(startedAtMs));
  setHeaders(reply, headers);
  void reply.code(status).header("content-type", contentType ?? JSON_TYPE);
  if (json instanceof Piece) {
    // Before that, the connection may still have to take some of them.
    reply.raw.once("finish", () => json.giveBack());
    void reply.send(json.bytes);
  } else {
    void reply.send(contentType === undefined ? (json ?? JSON.stringify(body)) : body);
  }
  endBody(request.raw);
  return reply;
}

/** From here on it is written past the framework, which knows only answers that end. */
async function sendEvents(
  stream: EventStream,
  request: FastifyRequest,
  reply: FastifyReply,
  host: SocketHost,
): Promise<FastifyReply> {
  endBody(request.raw);
  const first = await stream.next();
  const { route, startedAtMs } = request as KnownRequest;
  route?.metrics.record(first === undefined ? 204 : 200, secondsSince(startedAtMs));
  if (first === undefined) return reply.code(204).send();
  reply.hijack();
  void writeEvents(beginningWith(first, stream), reply.raw, { headers: { ...reply.getHeaders() }, host });
  return reply;
}

/** What an answer varies by comes on top of what it varies by already. */
function setHeaders(reply: FastifyReply, headers: Answer["headers"] = {}): void {
  for (const [name, value] of Object.entries(headers)) {
    if (name === "vary") vary(reply, value);
    else void reply.header(name, value);
  }
}

function vary(reply: FastifyReply, by: string): void {
  const known = reply.getHeader("vary");
  void reply.header("vary", known === undefined ? by : `${String(known)}, ${by}`);
}

type SendError = (error: RelayError, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Errors have the shape of the family that the path belongs to, whether or not there is such a route. */
function errorSenderOf(routes: readonly Route[]): SendError {
  const families = [...new Set(routes.flatMap(({ family }) => family ?? []))];
  const familyOf = (url: string): RouteFamily | undefined => {
    const [path = ""] = url.split("?", 1);
    return families.find(({ owns }) => owns(path));
  };
  return (error, request, reply) => {
    const retryAfterS = RETRY_AFTER_S[error.code];
    if (retryAfterS !== undefined) void reply.header("retry-after", retryAfterS);
    if (error.code === "unauthenticated") void reply.header("www-authenticate", "Bearer");
    // What is left of an oversized body must not be read as the next request. Of one that was read nothing is left,
    // though the server may take notice of its end only behind the answer.
    const isLeft = request.body === undefined && !request.raw.complete;
    if (error.code === "too_large" && isLeft) void reply.header("connection", "close");
    // What was to become a socket is no connection for further requests.
    if (request.headers.upgrade !== undefined) {
      void reply.header("connection", "close");
      reply.raw.once("finish", () => request.raw.socket.destroySoon());
    }
    const { errorBody = toErrorBody, statusOf: statusIn = statusOf } = familyOf(request.url) ?? {};
    return sendAnswer({ status: statusIn(error), body: errorBody(error) }, request, reply);
  };
}

function readBodies(app: FastifyInstance, memory: ReusedMemory): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(["application/json", A2A_JSON], (request: FastifyRequest, payload: Readable) => {
    const { bodyBytesMax: bytesMax = LIMITS.bodyBytesMax, parsesItself } =
      (request as KnownRequest).route ?? {};
    const parse = parsesItself === true ? asItIs : jsonOfBody;
    return readBody<unknown>(payload, { bytesMax, memory, parse });
  });
}

function asItIs(body: Piece): Piece {
  return body;
}

function guardRequests(app: FastifyInstance, guard: LocalGuard, stopping: AbortSignal): void {
  app.addHook("onRequest", (request, reply, done) => {
    (request as KnownRequest).startedAtMs = performance.now();
    const { origin } = request.headers;
    try {
      if (stopping.aborted)
        throw new RelayError("unavailable", "the relay is stopping; try again in a moment");
      guard.check(request.headers);
    } catch (reason) {
      done(reason as Error);
      return;
    }
    if (origin !== undefined && guard.allowsOrigin(origin)) {
      void reply
        .header("access-control-allow-origin", origin)
        .header("access-control-expose-headers", `${HEARTBEAT_HEADER}, a2a-extensions`)
        .header("vary", "origin");
      if (request.method === "OPTIONS") {
        void reply
          .code(204)
          .header("access-control-allow-methods", "GET, POST, DELETE")
          .header(
            "access-control-allow-headers",
            "authorization, content-type, last-event-id, a2a-version, a2a-extensions, idempotency-key",
          )
          .send();
        return;
      }
    }
    done();
  });
}
