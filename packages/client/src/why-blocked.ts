import { RelayError } from "@a2a-relay/protocol";
import type { HttpExchange } from "./http-exchange.ts";
import { TransportBlocked } from "./transport-blocked.ts";

/**
 * Why a way to a mailbox is closed: what a plain request for it is answered, or, where that one is answered well, that
 * only this way is. A WebSocket does not say why it was refused, and a 404 may be one of a relay without streams.
 */
export async function whyBlocked(
  exchange: HttpExchange,
  agentId: string,
  what: string,
  options: { readonly signal: AbortSignal },
): Promise<RelayError> {
  const query = { peek: true, limit: 1 };
  const call = { method: "GET", path: ["mailbox", agentId], query, repeat: "never" } as const;
  try {
    await exchange.json(call, "messages", options);
  } catch (reason) {
    options.signal.throwIfAborted();
    return RelayError.from(reason);
  }
  return new TransportBlocked(
    `the relay at ${exchange.urlOf({ path: [] })} answers, but ${what}; is there a proxy in between?`,
  );
}
