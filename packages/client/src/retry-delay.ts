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
