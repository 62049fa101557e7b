import type { IncomingMessage } from "node:http";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import websocket from "@fastify/websocket";
import type { FastifyInstance } from "fastify";
import { chosenProtocol, socketCredential } from "../streams/socket-credential.ts";
import {
  callOf,
  describeRoute,
  knowCaller,
  type KnownRequest,
  type Place,
  secondsSince,
} from "./known-request.ts";
import type { Route, SocketRoute } from "./route.ts";
import { withoutTenant } from "./tenant-path.ts";

/** How long the other side of a socket may take to say goodbye. */
const SOCKET_CLOSE_MS = 2_000;

const OPTIONS = {
  // Answered by the socket itself, which knows how much it has not got rid of.
  autoPong: false,
  closeTimeout: SOCKET_CLOSE_MS,
  handleProtocols: chosenProtocol,
  maxPayload: LIMITS.batchBodyBytesMax,
  perMessageDeflate: false,
};

/** In a scope of their own, so that no other route pays for what sockets need. */
export function mountSockets(app: FastifyInstance, routes: readonly Route[], place: Place): void {
  void app.register(async (scope) => {
    await scope.register(websocket, {
      options: OPTIONS,
      // Whatever breaks a connection also closes it, and closing is where it is dealt with.
      errorHandler: () => undefined,
      // Each socket closes itself when the relay stops, once what was asked over it is answered.
      preClose: (done) => done(),
    });
    for (const route of routes) if (route.socket === true) mountSocket(scope, route, place);
  });
}

/** Clients that offer an upgrade with whatever they ask are answered as if they did not, but for a socket. */
export function upgradesTo(routes: readonly Route[]): (request: IncomingMessage) => boolean {
  const paths = routes.flatMap(({ path, socket }) =>
    socket === true ? [new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/?]+")}(?:\\?|$)`)] : [],
  );
  return ({ headers, url = "/" }) =>
    headers.upgrade?.toLowerCase() === "websocket" && paths.some((path) => path.test(withoutTenant(url)));
}

/** Whoever may not have the socket is refused before there is one. */
function mountSocket(scope: FastifyInstance, route: SocketRoute, place: Place): void {
  const { waiting, host } = place;
  const { url, know } = describeRoute(route, place.metrics);
  scope.route({
    method: route.method,
    url,
    exposeHeadRoute: false,
    onRequest: [know, knowCaller(place, socketCredential, "websocket")],
    preHandler: async (request, reply) => {
      (request as KnownRequest).session = await route.accept(callOf(route, request, reply, waiting));
    },
    handler: async (request) => {
      (request as KnownRequest).session?.[Symbol.dispose]();
      throw new RelayError("invalid_argument", "this path is a WebSocket; connect to it as one");
    },
    wsHandler: (socket, request) => {
      const { route: config, session, startedAtMs } = request as KnownRequest;
      config?.metrics.record(101, secondsSince(startedAtMs));
      session?.run(socket, host);
    },
  });
}
