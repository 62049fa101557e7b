import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { LIMITS } from "@a2a-relay/protocol";
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import type { Authenticator } from "../../core/access/authenticator.ts";
import type { Principal } from "../../core/access/principal.ts";
import type { TenantService } from "../../core/keys/tenant-service.ts";
import type { SocketHost, SocketSession } from "../streams/socket-session.ts";
import { HttpCall, type WaitingCalls } from "./http-call.ts";
import type { HttpMetrics, RouteMetrics } from "./http-metrics.ts";
import { readQuery } from "./query.ts";
import type { Route } from "./route.ts";
import { tenantOfPath } from "./tenant-path.ts";

/** What is known of a request before its body is read. */
export type KnownRequest = FastifyRequest & {
  startedAtMs: number;
  principal?: Principal;
  route?: RouteConfig;
  session?: SocketSession;
};

/** What the server keeps of a route for when it is called. */
interface RouteConfig {
  readonly bodyBytesMax: number;
  readonly parsesItself: boolean;
  readonly metrics: RouteMetrics;
}

/** What routes are mounted with. */
export interface Place {
  readonly authenticator: Authenticator;
  readonly tenants: TenantService;
  readonly waiting: WaitingCalls;
  readonly metrics: HttpMetrics;
  readonly host: SocketHost;
}

/** A route's path as the framework writes it. */
export function urlOf({ path, isOpenEnded = false }: Pick<Route, "path" | "isOpenEnded">): string {
  const open = isOpenEnded ? path.replace(/\{\w+\}$/, "*") : path;
  return open.replaceAll(/\{(\w+)\}/g, ":$1");
}

/** Where a route is, and the hook that tells what is known of it. */
export function describeRoute(
  route: Route,
  metrics: HttpMetrics,
): { readonly url: string; readonly know: onRequestHookHandler } {
  const url = urlOf(route);
  const config: RouteConfig = {
    bodyBytesMax: route.bodyBytesMax ?? LIMITS.bodyBytesMax,
    parsesItself: route.parsesItself === true,
    metrics: metrics.route(route.method, url),
  };
  const know: onRequestHookHandler = (request, _reply, done) => {
    // Kept here because the framework would put its own description together at every look.
    (request as KnownRequest).route = config;
    done();
  };
  return { url, know };
}

/** Before the body is read: a stranger's bytes are not worth parsing. */
export function knowCaller(
  { authenticator, tenants }: Place,
  credentialIn = ({ authorization }: IncomingHttpHeaders): string | undefined => authorization,
  transport = "http",
): onRequestHookHandler {
  const { everybody } = authenticator;
  const know = async (request: FastifyRequest, done: (reason?: Error) => void): Promise<void> => {
    try {
      const principal = await authenticator.authenticate(credentialIn(request.headers), transport);
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
    const authorization = credentialIn(request.headers);
    const isPlain = request.originalUrl === request.url;
    const atOnce = authorization === undefined ? everybody : undefined;
    if (!isPlain || atOnce === undefined) {
      void know(request, done);
      return;
    }
    (request as KnownRequest).principal = atOnce;
    done();
  };
}

/** For what is open unless a key is shown: whoever shows none on the plain path is whoever may come in without. */
export function knowCallerIfShown(place: Place): onRequestHookHandler {
  const know = knowCaller(place);
  const { everybody } = place.authenticator;
  return function knowIfShown(request, reply, done) {
    const { authorization = "" } = request.headers;
    if (authorization !== "" || request.originalUrl !== request.url) {
      know.call(this, request, reply, done);
      return;
    }
    if (everybody !== undefined) (request as KnownRequest).principal = everybody;
    done();
  };
}

export function publicCallOf(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  waiting: WaitingCalls,
): HttpCall<Principal | undefined> {
  const { principal } = request as KnownRequest;
  return new HttpCall(principal, request, readQuery(route.query, request.query), reply, waiting);
}

export function callOf(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  waiting: WaitingCalls,
): HttpCall {
  const { principal } = request as KnownRequest;
  assert(principal !== undefined, "a caller is known before its body is read");
  return new HttpCall(principal, request, readQuery(route.query, request.query), reply, waiting);
}

export function secondsSince(startedAtMs: number): number {
  return (performance.now() - startedAtMs) / 1_000;
}
