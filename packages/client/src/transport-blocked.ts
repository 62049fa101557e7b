import { RelayError } from "@a2a-relay/protocol";

/**
 * The relay answers, but not in this way: an older relay, or a proxy that knows no WebSocket or holds streams back.
 * Another way may be open.
 */
export class TransportBlocked extends RelayError {
  constructor(message: string, options: ErrorOptions = {}) {
    super("unavailable", message, options);
  }
}
