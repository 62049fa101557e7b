import { setTimeout as sleep } from "node:timers/promises";
import { type FollowOptions, TransportBlocked } from "@a2a-relay/client";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { CommandContext } from "../command-line/command-context.ts";
import { formatDuration } from "../terminal/duration.ts";

const DELAY_MS_FIRST = 1_000;
const DELAY_MS_MAX = 30_000;

/** 1 s, 2 s, 4 s … 30 s. */
export function backoffMs(failures: number): number {
  return Math.min(DELAY_MS_MAX, DELAY_MS_FIRST * 2 ** Math.min(failures - 1, 10));
}

/** How long one of many requests waits; never so short that following becomes a tight loop. */
export function longPollMs(intervalMs: number): number {
  return Math.min(Math.max(intervalMs, DELAY_MS_FIRST), LIMITS.waitMsMax);
}

export type KeepTrying = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * For commands that run for days: once the relay has answered, they outlive its restarts. Before that an
 * unreachable relay is a wrong address, and the command ends. After `untilMs` it gives up all the same.
 */
export function createKeepTrying(context: CommandContext, untilMs = Number.POSITIVE_INFINITY): KeepTrying {
  let answered = false;
  return async (call) => {
    // Asked apart from the call, which may wait for minutes before it has anything to answer.
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
