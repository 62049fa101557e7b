import type { A2aVersion } from "@a2a-relay/protocol";
import type { A2aOpenOptions } from "./agent-binding.ts";

/** Bounds of a stream: how long it may be silent, and its longest event. */
export interface StreamLimits {
  readonly idleMs: number;
  readonly charsMax: number;
}

/** Versions before 1.0 have no header for it, and browsers would ask their servers about one in vain. */
export function callHeaders(version: A2aVersion, options: A2aOpenOptions): Record<string, string> {
  const { idempotencyKey, lastEventId } = options;
  return {
    ...(version === "1.0" ? { "a2a-version": version } : {}),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  };
}
