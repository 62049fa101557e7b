import type { MailboxStreamQuery, RelayError } from "@a2a-relay/protocol";
import { onAbort } from "../http/abort.ts";
import { TransportBlocked } from "../http/http-answer.ts";
import { type Patience, untilReached } from "../http/retry.ts";
import type { InboxFrame } from "./inbox-frames.ts";
import type { FollowOptions } from "./resumed-stream.ts";
import { SOCKET_OPEN_MS, SocketChannel, type SocketChannelParts } from "./socket-channel.ts";

/** The socket counts as blocked after this many refusals in a row: a stopping relay still answers HTTP for a moment. */
const BLOCKED_MAX = 3;

/**
 * The frames of a mailbox over a socket. Rejects with TransportBlocked when the relay answers and only the socket is
 * refused, at the start or later; the caller can continue over another transport after the last frame.
 */
export async function* inboxOverSocket(
  parts: SocketChannelParts,
  query: MailboxStreamQuery,
  { signal = new AbortController().signal, onAway = () => {} }: FollowOptions,
): AsyncGenerator<InboxFrame, void> {
  const blocking = new AbortController();
  let blocked = 0;
  const noteAway = (error: RelayError): void => {
    blocked = error instanceof TransportBlocked ? blocked + 1 : 0;
    if (blocked === BLOCKED_MAX) blocking.abort(error);
    else onAway(error);
  };
  const channel = await reachSocket(parts, query, { signal, onAway: noteAway });
  const close = (): void => void channel.close();
  const unsubscribe = [onAbort(signal, close), onAbort(blocking.signal, close)];
  try {
    signal.throwIfAborted();
    for await (const frame of channel.frames()) {
      signal.throwIfAborted();
      blocked = 0;
      yield frame;
    }
    signal.throwIfAborted();
    blocking.signal.throwIfAborted();
  } finally {
    for (const each of unsubscribe) each();
    await channel.close();
  }
}

/** While the relay is unreachable it is unknown whether sockets work, so this waits for the relay. */
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
      // The relay may have come back between the two attempts, so the next attempt decides.
      wasAway = !isBlocked;
      throw reason;
    }
  };
  const opened = await untilReached(open, { signal, onAway, delays: { firstMs, maxMs } });
  if (opened instanceof TransportBlocked) throw opened;
  return opened;
}
