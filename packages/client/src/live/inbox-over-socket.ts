import type { MailboxStreamQuery, RelayError } from "@a2a-relay/protocol";
import { onAbort } from "../http/abort.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import { type Patience, untilReached } from "../http/retry.ts";
import type { InboxFrame } from "./inbox-frames.ts";
import type { FollowOptions } from "./resumed-stream.ts";
import { SOCKET_OPEN_MS, SocketChannel, type SocketChannelParts } from "./socket-channel.ts";

/** So often in a row it must be the socket alone that is refused: a relay that stops may still answer for a moment. */
const BLOCKED_MAX = 3;

/**
 * MailboxMessage over a socket, for as long as one can be had. Rejects with TransportBlocked where the relay answers and only the
 * socket is refused, also when that begins later: what came until then was handed over, and another way goes on from
 * there.
 */
export async function* mailOverSocket(
  parts: SocketChannelParts,
  query: MailboxStreamQuery,
  { signal = new AbortController().signal, onAway = () => {} }: FollowOptions,
): AsyncGenerator<InboxFrame, void> {
  const leaving = new AbortController();
  let blocked = 0;
  const noteAway = (error: RelayError): void => {
    blocked = error instanceof TransportBlocked ? blocked + 1 : 0;
    if (blocked === BLOCKED_MAX) leaving.abort(error);
    else onAway(error);
  };
  const channel = await reachSocket(parts, query, { signal, onAway: noteAway });
  const close = (): void => void channel.close();
  const unsubscribe = [onAbort(signal, close), onAbort(leaving.signal, close)];
  try {
    signal.throwIfAborted();
    for await (const frame of channel.mail()) {
      signal.throwIfAborted();
      blocked = 0;
      yield frame;
    }
    signal.throwIfAborted();
    leaving.signal.throwIfAborted();
  } finally {
    for (const each of unsubscribe) each();
    await channel.close();
  }
}

/** An absence of the relay says nothing about which ways to it are open, so it is waited for. */
async function reachSocket(
  parts: SocketChannelParts,
  query: MailboxStreamQuery,
  { signal, onAway }: Omit<Patience, "delays">,
): Promise<SocketChannel> {
  const { retryDelayMs: firstMs, retryDelayMsMax: maxMs } = parts.options;
  let wasAway = false;
  const open = async (): Promise<SocketChannel | TransportBlocked> => {
    try {
      return await SocketChannel.open(parts, { ...query, openMs: SOCKET_OPEN_MS, signal, onAway });
    } catch (reason) {
      const isBlocked = reason instanceof TransportBlocked;
      if (isBlocked && !wasAway) return reason;
      // A relay that came back after the socket was tried answers too, so the next try tells.
      wasAway = !isBlocked;
      throw reason;
    }
  };
  const opened = await untilReached(open, { signal, onAway, delays: { firstMs, maxMs } });
  if (opened instanceof TransportBlocked) throw opened;
  return opened;
}
