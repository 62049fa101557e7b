import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import type { Authenticator } from "../../core/access/authenticator.ts";
import type { Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import type { StreamHost } from "./event-stream.ts";
import { type CallSignals, HttpCall, tenantOfPath } from "./http-call.ts";
import type { HttpMetrics } from "./http-metrics.ts";
import type { Route, SocketSession } from "./route.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** As `performance.now()` gives it. */
    startedAtMs: number;
    /** Undefined until the request reaches its route. */
    route: Route | undefined;
    /** Undefined for a caller that shows no key to a route that needs none. */
    principal: Principal | undefined;
    session: SocketSession | undefined;
  }
}

/** What the routes need of the server. */
export interface RouteHost {
  readonly authenticator: Authenticator;
  readonly tenants: Pick<TenantService, "enter">;
  readonly signals: CallSignals;
  readonly metrics: HttpMetrics;
  readonly streams: StreamHost;
}

/** A route's path as Fastify writes it. */
export function urlOf({ path, isOpenEnded = false }: Pick<Route, "path" | "isOpenEnded">): string {
  const open = isOpenEnded ? path.replace(/\{\w+\}$/, "*") : path;
  return open.replaceAll(/\{(\w+)\}/g, ":$1");
}

/** The first hook of a route: errors, limits and metrics depend on the route. */
export function setRoute(route: Route): onRequestHookHandler {
  return (request, _reply, done) => {
    request.route = route;
    done();
  };
}

/** A hook that finds out who calls. */
export type AuthenticationHook = (request: FastifyRequest) => Promise<void>;

/** Runs before the body is read, so that the relay parses nothing for strangers. */
export function authenticateCaller(
  { authenticator, tenants }: RouteHost,
  credentialIn = ({ authorization }: IncomingHttpHeaders): string | undefined => authorization,
  transport = "http",
): AuthenticationHook {
  return async (request) => {
    const principal = await authenticator.authenticate(credentialIn(request.headers), transport);
    const tenant = tenantOfPath(request.originalUrl);
    request.principal = tenant === undefined ? principal : await tenants.enter(principal, tenant);
  };
}

/** For routes that are open to callers without a key; a tenant's path needs one. */
export function authenticateKeyedCaller(host: RouteHost): AuthenticationHook {
  const authenticate = authenticateCaller(host);
  return async (request) => {
    const isKeyed = (request.headers.authorization ?? "") !== "";
    if (isKeyed || tenantOfPath(request.originalUrl) !== undefined) await authenticate(request);
    else request.principal = host.authenticator.everybody;
  };
}

export function callOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { signals }: RouteHost,
): HttpCall<Principal> {
  const { principal } = request;
  assert(principal !== undefined, "the caller is authenticated before its body is read");
  return new HttpCall(principal, request, reply, signals);
}

export function recordAnswer(metrics: HttpMetrics, request: FastifyRequest, status: number): void {
  const { route, startedAtMs } = request;
  const labels =
    route === undefined
      ? { method: request.method, route: "none" }
      : { method: route.method, route: urlOf(route) };
  metrics.record(labels, status, (performance.now() - startedAtMs) / 1_000);
}
