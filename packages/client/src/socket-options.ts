import type { MailboxSocketQuery, RelayError } from "@a2a-relay/protocol";
import type { CallOptions } from "./http-exchange.ts";

/** What the socket shows by itself. The signal is about its opening; from then on it lives until it is closed. */
export interface SocketOptions extends MailboxSocketQuery, CallOptions {
  /** How long opening it may take, in milliseconds. Default: the client's `timeoutMs`. */
  readonly openMs?: number | undefined;
  /** Told of each failure to open it again, so that a long absence does not go unnoticed. */
  readonly onAway?: ((error: RelayError) => void) | undefined;
}

/** Where there are other ways, a socket that takes longer to open is not worth waiting for, in milliseconds. */
export const SOCKET_OPEN_MS = 5_000;
