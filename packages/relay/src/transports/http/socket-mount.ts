import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { LIMITS, RelayError, SOCKET_KEY_PREFIX, SOCKET_PROTOCOL } from "@a2a-relay/protocol";
import websocket from "@fastify/websocket";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { ArrivingCall } from "../gateway/gateway.ts";
import { tenantOfPath, withoutTenant } from "./http-call.ts";
import { admitCaller, callOf, recordAnswer, type RouteHost, setRoute, urlOf } from "./request-context.ts";
import type { Route, SocketRoute } from "./route.ts";

/** How long the client may take to answer a close frame. */
const SOCKET_CLOSE_MS = 2_000;

const OPTIONS = {
  // The session sends pongs itself, because it limits what it buffers.
  autoPong: false,
  closeTimeout: SOCKET_CLOSE_MS,
  handleProtocols: chosenProtocol,
  maxPayload: LIMITS.batchBodyBytesMax,
  perMessageDeflate: false,
};

/** Mounts the socket routes in a Fastify scope, so that the plugin's hooks run for no other route. */
export function mountSockets(app: FastifyInstance, routes: readonly Route[], host: RouteHost): void {
  void app.register(async (scope) => {
    await scope.register(websocket, {
      options: OPTIONS,
      // A broken connection also closes, and the session handles that.
      errorHandler: () => undefined,
      // Each session closes its socket when the relay stops, after it has answered.
      preClose: (done) => done(),
    });
    for (const route of routes) if (route.socket === true) mountSocket(scope, route, host);
  });
}

/** Upgrades only the paths of sockets: other requests that offer an upgrade get a plain HTTP answer. */
export function upgradesTo(routes: readonly Route[]): (request: IncomingMessage) => boolean {
  const paths = routes.flatMap(({ path, socket }) =>
    socket === true ? [new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?]+")}(?:\\?|$)`)] : [],
  );
  return ({ headers, url = "/" }) =>
    headers.upgrade?.toLowerCase() === "websocket" && paths.some((path) => path.test(withoutTenant(url)));
}

/** The route refuses callers with an HTTP answer, before the upgrade. */
function mountSocket(scope: FastifyInstance, route: SocketRoute, host: RouteHost): void {
  scope.route({
    method: route.method,
    url: urlOf(route),
    exposeHeadRoute: false,
    onRequest: [setRoute(route), admitCaller(host, readSocketCall)],
    preHandler: async (request, reply) => {
      request.session = await route.accept(callOf(request, reply, host));
    },
    handler: async (request) => {
      request.session?.[Symbol.dispose]();
      throw new RelayError("invalid_argument", "this path is a WebSocket; connect to it as one");
    },
    wsHandler: (socket, request) => {
      recordAnswer(host.metrics, request, 101);
      request.session?.run(socket, { ...host.streams, gateway: host.gateway });
    },
  });
}

function readSocketCall({ headers, originalUrl }: FastifyRequest): ArrivingCall {
  const tenant = tenantOfPath(originalUrl);
  return { credential: socketCredential(headers), tenant, transport: "websocket" };
}

/** The key as an Authorization header has it. Browsers send it as a subprotocol, since they cannot set the header. */
export function socketCredential({
  authorization,
  "sec-websocket-protocol": offered = "",
}: IncomingHttpHeaders): string | undefined {
  if (authorization !== undefined) return authorization;
  const key = offered
    .split(",")
    .map((protocol) => protocol.trim())
    .find((protocol) => protocol.startsWith(SOCKET_KEY_PREFIX));
  if (key === undefined) return undefined;
  return `Bearer ${Buffer.from(key.slice(SOCKET_KEY_PREFIX.length), "base64url").toString()}`;
}

/** Ours, if the client offers it. The answer must not repeat the key. */
export function chosenProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(SOCKET_PROTOCOL) ? SOCKET_PROTOCOL : false;
}
