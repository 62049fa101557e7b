import type { IncomingHttpHeaders } from "node:http";
import { SOCKET_KEY_PREFIX, SOCKET_PROTOCOL } from "@a2a-relay/protocol";

/** As an Authorization header. Browsers cannot send one with a socket, so the key may come as a subprotocol. */
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

/** Ours, if it was offered. The key must not come back in an answer. */
export function chosenProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(SOCKET_PROTOCOL) ? SOCKET_PROTOCOL : false;
}
