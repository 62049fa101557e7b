import { setTimeout as sleep } from "node:timers/promises";
import { type FollowOptions, TransportBlocked } from "@a2a-relay/client";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { CommandContext } from "../command-line/command-context.ts";
import { formatDuration } from "../terminal/duration.ts";

const DELAY_MS_FIRST = 1_000;
const DELAY_MS_MAX = 30_000;
/** At most one note in this time, however many tries fail. */
const NOTE_MS = 30_000;

/** 1 s, 2 s, 4 s … 30 s. */
export function backoffMs(failures: number): number {
  return Math.min(DELAY_MS_MAX, DELAY_MS_FIRST * 2 ** Math.min(failures - 1, 10));
}

/** How long one request of a series waits: at least 1 s, so that polling never becomes a tight loop. */
export function longPollMs(intervalMs: number): number {
  return Math.min(Math.max(intervalMs, DELAY_MS_FIRST), LIMITS.waitMsMax);
}

export type KeepTrying = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * For commands that run for days: after the first answer of the relay, a call is repeated while the relay cannot be
 * reached, until `untilMs`. Before the first answer the address is taken to be wrong, and the call fails.
 */
export function createKeepTrying(context: CommandContext, untilMs = Number.POSITIVE_INFINITY): KeepTrying {
  let answered = false;
  return async (call) => {
    // A separate request, because the call may be a long poll that takes minutes.
    if (!answered) await context.client.health({ signal: context.signal });
    answered = true;
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (reason) {
        const leftMs = untilMs - performance.now();
        if (leftMs <= 0 || !(reason instanceof RelayError) || reason.code !== "unavailable") throw reason;
        const delayMs = Math.min(leftMs, backoffMs(failures));
        await context.output.note(`relay not reachable, trying again in ${formatDuration(delayMs)}`);
        await sleep(delayMs, undefined, { signal: context.signal });
      }
    }
  };
}

/** Notes on stderr when the relay cannot be reached. */
export function followOptions({ output, signal }: CommandContext): FollowOptions {
  let notedAtMs = Number.NEGATIVE_INFINITY;
  const onAway = (): void => {
    const nowMs = performance.now();
    if (nowMs - notedAtMs < NOTE_MS) return;
    notedAtMs = nowMs;
    // A closed stderr is no reason to stop.
    output.note("relay not reachable, trying again").catch(() => undefined);
  };
  return { signal, onAway };
}

/** An older relay has no streams, and some proxies hold them back. */
export function isBlocked(reason: unknown): boolean {
  return reason instanceof TransportBlocked || (reason instanceof RelayError && reason.code === "not_found");
}
