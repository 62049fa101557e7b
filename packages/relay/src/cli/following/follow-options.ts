import { type FollowOptions, TransportBlocked } from "@a2a-relay/client";
import { RelayError } from "@a2a-relay/protocol";
import type { CommandContext } from "../command-line/command-context.ts";

/** With a note for each absence of the relay. */
export function followOptions({ output, signal }: CommandContext): FollowOptions {
  let notedAtMs = Number.NEGATIVE_INFINITY;
  const onAway = (): void => {
    const nowMs = performance.now();
    if (nowMs - notedAtMs < NOTE_MS) return;
    notedAtMs = nowMs;
    // Whoever reads our notes may have gone; what it wants to know it reads elsewhere.
    output.note("relay not reachable, trying again").catch(() => undefined);
  };
  return { signal, onAway };
}

/** Nobody wants to read of each of many tries. */
const NOTE_MS = 30_000;

/** An older relay has no streams, and some proxies hold them back. */
export function isBlocked(reason: unknown): boolean {
  return reason instanceof TransportBlocked || (reason instanceof RelayError && reason.code === "not_found");
}
