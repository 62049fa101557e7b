import type { Readable } from "node:stream";
import { HEARTBEAT_HEADER, LIMITS, RelayError, toErrorBody } from "@a2a-relay/protocol";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from "fastify";
import type { Gateway } from "../gateway/gateway.ts";
import { beginningWith, type EventStream, writeEvents } from "./event-stream.ts";
import { CallSignals, HttpCall, withoutTenant } from "./http-call.ts";
import { fromServerError, RETRY_AFTER_S, statusOf, toWireAnswer } from "./http-error.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import { assertNoForeignLink, LocalGuard, type LocalGuardSettings } from "./local-guard.ts";
import { parseJson, readBody } from "./read-body.ts";
import {
  admitAnyone,
  admitCaller,
  type AdmissionHook,
  callOf,
  recordAnswer,
  type RouteHost,
  setRoute,
  urlOf,
} from "./request-context.ts";
import { type Answer, JSON_TYPE, type Route, type RouteFamily, type SocketRoute } from "./route.ts";
import { mountSockets, upgradesTo } from "./socket-mount.ts";

export interface HttpServerParts {
  readonly routes: readonly Route[];
  readonly gateway: Gateway;
  readonly metrics: HttpMetrics;
  readonly log: ErrorLog;
}

/** Receives errors that a client must not see. */
export interface ErrorLog {
  error(about: Readonly<Record<string, unknown>>, text: string): void;
}

export interface HttpServerSettings extends LocalGuardSettings {
  /** The interval between heartbeats of a stream. */
  readonly heartbeatMs: number;
  /** The relay disconnects a reader that takes nothing for so long. */
  readonly streamStallMs: number;
}

const A2A_JSON = "application/a2a+json";
const REQUEST_TIMEOUT_MS = 30_000;
const PARAM_CHARS_MAX = 1_000;

/** Reads the wire, calls the core, writes the wire. No rules live here. */
export function createHttpServer(parts: HttpServerParts, settings: HttpServerSettings): FastifyInstance {
  const { routes, gateway, metrics, log } = parts;
  const sendError = errorSenderOf(routes, metrics);
  const app = Fastify({
    // `readBody` enforces the limit, because it also drains the rest.
    bodyLimit: Number.MAX_SAFE_INTEGER,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // Every route also exists under /t/{tenant}.
    rewriteUrl: ({ url = "/" }) => withoutTenant(url),
    forceCloseConnections: "idle",
    // The relay refuses requests itself while it stops.
    return503OnClosing: false,
    // The guard refuses a missing host, with an error of the usual shape.
    http: { requireHostHeader: false, shouldUpgradeCallback: upgradesTo(routes) },
    frameworkErrors: (reason, request, reply) => void sendError(fromServerError(reason), request, reply),
    clientErrorHandler: (reason, socket) => {
      if (socket.writable) socket.write(toWireAnswer(reason));
      socket.destroySoon();
    },
  });
  app.server.maxConnections = LIMITS.connectionsMax;
  app.decorateRequest("startedAtMs", 0);
  for (const name of ["route", "principal", "session"] as const) app.decorateRequest(name, undefined);
  readBodies(app);
  guardRequests(app, new LocalGuard(settings), gateway);
  app.setErrorHandler((reason, request, reply) => {
    const error = fromServerError(reason);
    if (error.code === "internal") {
      log.error({ err: error.cause ?? error, method: request.method, url: request.url }, "internal error");
    }
    return sendError(error, request, reply);
  });
  app.setNotFoundHandler((request, reply) => {
    const what = `there is no ${request.method} ${request.url.split("?", 1)[0] ?? ""} here; GET /docs lists all`;
    recordAnswer(metrics, request, 404);
    return sendError(new RelayError("not_found", what), request, reply);
  });
  const host: RouteHost = {
    gateway,
    signals: new CallSignals(gateway.stopping),
    metrics,
    streams: {
      meter: metrics.streams,
      heartbeatMs: settings.heartbeatMs,
      stallMs: settings.streamStallMs,
      onFailure: (reason) => log.error({ err: reason }, "a stream failed"),
    },
  };
  for (const route of routes) if (route.socket !== true) mount(app, route, host);
  mountSockets(app, routes, host);
  return app;
}

function mount(app: FastifyInstance, route: Exclude<Route, SocketRoute>, host: RouteHost): void {
  app.route({
    method: route.method,
    url: urlOf(route),
    // A HEAD would mark messages as delivered that the caller never sees.
    exposeHeadRoute: route.waits !== true,
    onRequest: [
      setRoute(route),
      ...(route.drains === true ? [refuseForeignLinks] : []),
      ...admissionTo(route, host),
    ],
    handler: async (request, reply) => {
      const answer = await handle(route, request, reply, host);
      if (route.streams === "on request") vary(reply, "accept");
      if (answer.events === undefined) return sendAnswer(answer, request, reply, host.metrics);
      setHeaders(reply, answer.headers);
      return sendEvents(answer.events, request, reply, host);
    },
  });
}

function handle(
  route: Exclude<Route, SocketRoute>,
  request: FastifyRequest,
  reply: FastifyReply,
  host: RouteHost,
): Promise<Answer> {
  const { signals } = host;
  if (route.open === true) return route.handle(new HttpCall(undefined, request, reply, signals));
  if (route.open === "unless-keyed") {
    return route.handle(new HttpCall(request.principal, request, reply, signals));
  }
  return route.handle(callOf(request, reply, host));
}

function admissionTo(route: Route, host: RouteHost): readonly AdmissionHook[] {
  if (route.open === true) return [];
  return [route.open === "unless-keyed" ? admitAnyone(host) : admitCaller(host)];
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
  { status = 200, body, contentType, headers }: Answer,
  request: FastifyRequest,
  reply: FastifyReply,
  metrics: HttpMetrics,
): FastifyReply {
  if (request.route !== undefined) recordAnswer(metrics, request, status);
  setHeaders(reply, headers);
  return reply
    .code(status)
    .header("content-type", contentType ?? JSON_TYPE)
    .send(contentType === undefined ? JSON.stringify(body) : body);
}

/** Answers 204 when the stream has no first event: browsers do not reconnect after it. */
async function sendEvents(
  stream: EventStream,
  request: FastifyRequest,
  reply: FastifyReply,
  host: RouteHost,
): Promise<FastifyReply> {
  const first = await stream.next();
  recordAnswer(host.metrics, request, first === undefined ? 204 : 200);
  if (first === undefined) return reply.code(204).send();
  reply.hijack();
  const headers = { ...reply.getHeaders() };
  void writeEvents(beginningWith(first, stream), reply.raw, { headers, host: host.streams });
  return reply;
}

function setHeaders(reply: FastifyReply, headers: Answer["headers"] = {}): void {
  for (const [name, value] of Object.entries(headers)) {
    if (name === "vary") vary(reply, value);
    else void reply.header(name, value);
  }
}

/** Adds to what the answer varies by already. */
function vary(reply: FastifyReply, by: string): void {
  const before = reply.getHeader("vary");
  void reply.header("vary", before === undefined ? by : `${String(before)}, ${by}`);
}

type SendError = (error: RelayError, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Errors have the shape of the family that the path belongs to, also where no such route exists. */
function errorSenderOf(routes: readonly Route[], metrics: HttpMetrics): SendError {
  const families = [...new Set(routes.flatMap(({ family }) => family ?? []))];
  const familyOf = (url: string): RouteFamily | undefined => {
    const [path = ""] = url.split("?", 1);
    return families.find(({ owns }) => owns(path));
  };
  return (error, request, reply) => {
    const retryAfterS = RETRY_AFTER_S[error.code];
    if (retryAfterS !== undefined) void reply.header("retry-after", retryAfterS);
    if (error.code === "unauthenticated") void reply.header("www-authenticate", "Bearer");
    // The rest of an oversized body must not be read as the next request.
    if (error.code === "too_large" && !request.raw.complete) void reply.header("connection", "close");
    // A connection that offered an upgrade carries no further requests.
    if (request.headers.upgrade !== undefined) {
      void reply.header("connection", "close");
      reply.raw.once("finish", () => request.raw.socket.destroySoon());
    }
    const { errorBody = toErrorBody, statusOf: statusIn = statusOf } = familyOf(request.url) ?? {};
    return sendAnswer({ status: statusIn(error), body: errorBody(error) }, request, reply, metrics);
  };
}

function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ["application/json", A2A_JSON],
    async ({ route }: FastifyRequest, payload: Readable) =>
      parseJson(await readBody(payload, route?.bodyBytesMax ?? LIMITS.bodyBytesMax)),
  );
}

function guardRequests(app: FastifyInstance, guard: LocalGuard, gateway: Gateway): void {
  app.addHook("onRequest", (request, reply, done) => {
    request.startedAtMs = performance.now();
    const { origin } = request.headers;
    try {
      gateway.assertRunning();
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
