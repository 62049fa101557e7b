import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { pause } from "./abort.ts";

/** Delays between attempts: they double from `firstMs` to `maxMs`, with full jitter. */
export interface RetryDelays {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The delay before attempt `attempt + 1`. Full jitter, so that clients that lost the relay at the same time do not
 * reconnect at the same time.
 */
export function retryDelayMs(
  attempt: number,
  delays: RetryDelays,
  random: () => number = Math.random,
): number {
  return Math.floor(random() * Math.min(delays.maxMs, delays.firstMs * 2 ** Math.min(attempt - 1, 30)));
}

/** A `Retry-After` header, in seconds or as a date, as milliseconds from now. */
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
  /** Called after each failed attempt. */
  readonly onAway: (error: RelayError) => void;
}

/**
 * Repeats a call while the relay is unreachable or overloaded; any other refusal is thrown at once. Only for calls that
 * may safely happen twice.
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

/** The relay lost its data, so the agent has to register again. */
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
