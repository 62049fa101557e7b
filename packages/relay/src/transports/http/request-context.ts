import assert from "node:assert/strict";
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import type { Principal } from "../../core/access/principal.ts";
import type { ArrivingCall, Gateway } from "../gateway/gateway.ts";
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
  readonly gateway: Gateway;
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

/** A hook that admits the caller, before the body is read: the relay parses nothing for strangers. */
export type AdmissionHook = (request: FastifyRequest) => Promise<void>;

export function admitCaller({ gateway }: RouteHost, readCall = readHttpCall): AdmissionHook {
  return async (request) => {
    request.principal = await gateway.admit(readCall(request));
  };
}

/** For routes that are open to callers without a key. */
export function admitAnyone({ gateway }: RouteHost): AdmissionHook {
  return async (request) => {
    request.principal = await gateway.admitAnyone(readHttpCall(request));
  };
}

function readHttpCall({ headers, originalUrl }: FastifyRequest): ArrivingCall {
  return { credential: headers.authorization, tenant: tenantOfPath(originalUrl), transport: "http" };
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
