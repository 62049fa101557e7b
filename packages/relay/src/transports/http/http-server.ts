import assert from "node:assert/strict";
import type { Readable } from "node:stream";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from "fastify";
import type { Authenticator } from "../../core/access/authenticator.ts";
import type { Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/access/tenant-service.ts";
import type { RelayCore } from "../../core/relay-core.ts";
import { taskQueueRoutes } from "../task-queue/task-queue-routes.ts";
import { agentRoutes } from "./agent-routes.ts";
import { capabilityRoutes } from "./capability-routes.ts";
import { fromServerError, RETRY_AFTER_S, statusOf, toErrorBody, toWireAnswer } from "./http-error.ts";
import { HttpCall, HttpOpenCall, WaitingCalls } from "./http-call.ts";
import { HttpMetrics, type RouteMetrics } from "./http-metrics.ts";
import { keyRoutes } from "./key-routes.ts";
import { assertNoForeignLink, LocalGuard, type LocalGuardSettings } from "./local-guard.ts";
import { mailboxRoutes } from "./mailbox-routes.ts";
import { messageRoutes } from "./message-routes.ts";
import { operatorRoutes } from "./operator-routes.ts";
import { readQuery } from "./query.ts";
import { readJsonBody } from "./read-body.ts";
import type { Answer, Route, RouteFamily } from "./route.ts";
import { serviceRoutes } from "./service-routes.ts";
import { taskRoutes } from "./task-routes.ts";
import { tenantOfPath, withoutTenant } from "./tenant-path.ts";
import { tenantRoutes } from "./tenant-routes.ts";

export interface HttpServerParts {
  readonly core: RelayCore;
  readonly authenticator: Authenticator;
  readonly openMail: (tenant: string) => Promise<ReadonlyMap<string, number>>;
  readonly log: ErrorLog;
  /** Aborted when the relay stops: whoever waits is answered at once. */
  readonly stopping: AbortSignal;
}

/** Where errors go that a client must not see. */
export interface ErrorLog {
  error(about: Readonly<Record<string, unknown>>, text: string): void;
}

export interface HttpServerSettings extends LocalGuardSettings {
  readonly version: string;
  /** The address the relay tells others; known once it listens. */
  readonly publicUrl: () => string;
}

const JSON_TYPE = "application/json; charset=utf-8";
const REQUEST_TIMEOUT_MS = 30_000;
const PARAM_CHARS_MAX = 1_000;

/** All routes, as data. */
export function nativeRoutes(
  core: RelayCore,
  metrics: HttpMetrics,
  about: Pick<HttpServerSettings, "version" | "publicUrl">,
): readonly Route[] {
  const others = [
    ...agentRoutes(core.agents),
    ...messageRoutes(core.messages),
    ...mailboxRoutes(core.mailboxes),
    ...taskRoutes(core.tasks),
    ...operatorRoutes(core.journal, core.repairs),
    ...keyRoutes(core.keys),
    ...capabilityRoutes(core.capabilities),
    ...tenantRoutes(core.tenants),
    ...taskQueueRoutes(core.taskQueue),
  ];
  return [...others, ...serviceRoutes({ ...core, metrics, about, others })];
}

/** Reads the wire, calls the core, writes the wire. No rules live here. */
export function createHttpServer(parts: HttpServerParts, settings: HttpServerSettings): FastifyInstance {
  const metrics = new HttpMetrics(parts.openMail);
  const guard = new LocalGuard(settings);
  const routes = nativeRoutes(parts.core, metrics, settings);
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
    http: { requireHostHeader: false },
    frameworkErrors: (reason, request, reply) => void sendError(fromServerError(reason), request, reply),
    clientErrorHandler: (reason, socket) => {
      if (socket.writable) socket.write(toWireAnswer(reason));
      socket.destroySoon();
    },
  });
  app.server.maxConnections = LIMITS.connectionsMax;
  app.decorateRequest("startedAtMs", 0);
  readBodies(app);
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
  const waiting = new WaitingCalls(parts.stopping);
  for (const route of routes) mount(app, route, parts, { waiting, metrics });
  return app;
}

/** What is known of a request before its body is read. */
type KnownRequest = FastifyRequest & {
  startedAtMs: number;
  principal?: Principal;
  route?: RouteConfig;
};

function mount(
  app: FastifyInstance,
  route: Route,
  parts: HttpServerParts,
  { waiting, metrics }: { readonly waiting: WaitingCalls; readonly metrics: HttpMetrics },
): void {
  const url = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
  const config: RouteConfig = {
    bodyBytesMax: route.bodyBytesMax ?? LIMITS.bodyBytesMax,
    metrics: metrics.route(route.method, url),
  };
  app.route({
    method: route.method,
    url,
    // Mail that nobody gets to see must not be marked as delivered.
    exposeHeadRoute: route.waits !== true,
    onRequest: [
      (request, _reply, done) => {
        // Kept here because the framework would put its own description together at every look.
        (request as KnownRequest).route = config;
        done();
      },
      ...(route.drains === true ? [refuseForeignLinks] : []),
      ...(route.open === true ? [] : [knowCaller(parts.authenticator, parts.core.tenants)]),
    ],
    handler: async (request, reply) => {
      const query = readQuery(route.query, request.query);
      if (route.open === true) {
        const call = new HttpOpenCall(request, query, reply, waiting);
        return sendAnswer(await route.handle(call), request, reply);
      }
      const { principal } = request as KnownRequest;
      assert(principal !== undefined, "a caller is known before its body is read");
      const call = new HttpCall(principal, request, query, reply, waiting);
      return sendAnswer(await route.handle(call), request, reply);
    },
  });
}

const refuseForeignLinks: onRequestHookHandler = (request, _reply, done) => {
  try {
    assertNoForeignLink(request.headers);
    done();
  } catch (reason) {
    done(reason as Error);
  }
};

/** Before the body is read: a stranger's bytes are not worth parsing. */
function knowCaller(authenticator: Authenticator, tenants: TenantService): onRequestHookHandler {
  const { everybody } = authenticator;
  const know = async (request: FastifyRequest, done: (reason?: Error) => void): Promise<void> => {
    try {
      const principal = await authenticator.authenticate(request.headers.authorization, "http");
      const isPlain = request.originalUrl === request.url;
      const tenant = isPlain ? undefined : tenantOfPath(request.originalUrl);
      (request as KnownRequest).principal =
        tenant === undefined ? principal : await tenants.enter(principal, tenant);
    } catch (reason) {
      done(reason as Error);
      return;
    }
    done();
  };
  return (request, _reply, done) => {
    const { authorization } = request.headers;
    const isPlain = request.originalUrl === request.url;
    const atOnce = authorization === undefined ? everybody : authenticator.known?.(authorization);
    if (!isPlain || atOnce === undefined) {
      void know(request, done);
      return;
    }
    (request as KnownRequest).principal = atOnce;
    done();
  };
}

function sendAnswer(
  { status = 200, body, json, contentType }: Answer,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  // Counted here and not in a hook after the answer: those cost every request two listeners.
  const { route, startedAtMs } = request as KnownRequest;
  route?.metrics.record(status, secondsSince(startedAtMs));
  void reply.code(status).header("content-type", contentType ?? JSON_TYPE);
  return reply.send(contentType === undefined ? (json ?? JSON.stringify(body)) : body);
}

type SendError = (error: RelayError, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Errors have the shape of the family that the path belongs to, whether or not there is such a route. */
function errorSenderOf(routes: readonly Route[]): SendError {
  const families = [...new Set(routes.flatMap(({ family }) => family ?? []))];
  const bodyOf = (error: RelayError, url: string): object => {
    const family: RouteFamily | undefined = families.find(({ prefix }) => url.startsWith(prefix));
    return family === undefined ? toErrorBody(error) : family.errorBody(error);
  };
  return (error, request, reply) => {
    const retryAfterS = RETRY_AFTER_S[error.code];
    if (retryAfterS !== undefined) void reply.header("retry-after", retryAfterS);
    if (error.code === "unauthenticated") void reply.header("www-authenticate", "Bearer");
    // What is left of an oversized body must not be read as the next request.
    if (error.code === "too_large" && !request.raw.complete) void reply.header("connection", "close");
    return sendAnswer({ status: statusOf(error), body: bodyOf(error, request.url) }, request, reply);
  };
}

/** What the server keeps of a route for when it is called. */
interface RouteConfig {
  readonly bodyBytesMax: number;
  readonly metrics: RouteMetrics;
}

function secondsSince(startedAtMs: number): number {
  return (performance.now() - startedAtMs) / 1_000;
}

function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", (request: FastifyRequest, payload: Readable) => {
    return readJsonBody(payload, (request as KnownRequest).route?.bodyBytesMax ?? LIMITS.bodyBytesMax);
  });
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
      void reply.header("access-control-allow-origin", origin).header("vary", "origin");
      if (request.method === "OPTIONS") {
        void reply
          .code(204)
          .header("access-control-allow-methods", "GET, POST, DELETE")
          .header("access-control-allow-headers", "authorization, content-type")
          .send();
        return;
      }
    }
    done();
  });
}
