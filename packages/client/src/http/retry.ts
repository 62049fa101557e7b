import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { pause } from "./abort.ts";

/** How long to wait between tries: doubling from the first to the last, with full jitter. */
export interface RetryDelays {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Before try `attempt + 1`. The jitter is full, anything from nothing to the ceiling, so that clients that
 * lost the relay in the same moment do not come back in the same moment.
 */
export function retryDelayMs(
  attempt: number,
  delays: RetryDelays,
  random: () => number = Math.random,
): number {
  return Math.floor(random() * Math.min(delays.maxMs, delays.firstMs * 2 ** Math.min(attempt - 1, 30)));
}

/** A `Retry-After` header, given in seconds or as a date, as milliseconds from now. */
export function parseRetryAfterMs(header: string | null, nowMs: number = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(header)) return Number(header) * 1_000;
  // Date.parse alone would read "-3" as a month.
  const atMs = /^\s*[A-Z][a-z]{2,8},/.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

export interface Patience {
  readonly signal: AbortSignal;
  readonly delays: RetryDelays;
  /** Told each time, so that a long absence does not go unnoticed. */
  readonly onAway: (error: RelayError) => void;
}

/**
 * Repeats a call for as long as the relay is away or overloaded. Only for what may happen twice without
 * harm; any other refusal is thrown at once.
 */
export async function untilReached<T>(call: () => Promise<T>, patience: Patience): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (reason) {
      patience.signal.throwIfAborted();
      if (!isAway(reason)) throw reason;
      patience.onAway(reason);
    }
    await pause(retryDelayMs(attempt, patience.delays), patience);
  }
}

const AWAY_CODES: readonly RelayErrorCode[] = ["unavailable", "resource_exhausted", "storage_full"];

/** After a loss of its data, the relay has to be told of the agent anew. */
export function isUnknownAgent(reason: unknown): reason is RelayError {
  if (!(reason instanceof RelayError)) return false;
  return reason.code === "not_found" || reason.code === "unknown_agent";
}

export function isAway(reason: unknown): reason is RelayError {
  return reason instanceof RelayError && isAwayCode(reason.code);
}

export function isAwayCode(code: RelayErrorCode): boolean {
  return AWAY_CODES.includes(code);
}
