import type { PushEndpoint } from "../ports/pushes.ts";

/** Failures in a row that open the circuit. */
export const CIRCUIT_FAILURES_MAX = 5;
const OPEN_MS_MIN = 30_000;
const OPEN_MS_MAX = 600_000;

export type Circuit = Pick<PushEndpoint, "failures" | "openUntilMs">;

export const CLOSED: Circuit = { failures: 0, openUntilMs: null };

/**
 * Five failures in a row open the circuit for 30 seconds; each failed probe doubles that, up to ten minutes.
 * Failures of attempts that began before it opened do not count.
 */
export function afterFailure({ failures, openUntilMs }: Circuit, nowMs: number): Circuit {
  if (openUntilMs !== null && nowMs < openUntilMs) return { failures, openUntilMs };
  const count = failures + 1;
  if (count < CIRCUIT_FAILURES_MAX) return { failures: count, openUntilMs: null };
  const openMs = Math.min(OPEN_MS_MIN * 2 ** (count - CIRCUIT_FAILURES_MAX), OPEN_MS_MAX);
  return { failures: count, openUntilMs: nowMs + openMs };
}

/** Opens the circuit at least until then, for a receiver that sent `Retry-After`. */
export function openedUntil({ failures, openUntilMs }: Circuit, untilMs: number): Circuit {
  return { failures, openUntilMs: Math.max(openUntilMs ?? 0, untilMs) };
}

/** How many attempts may be under way: none while the circuit is open, then one probe. */
export function attemptsAllowed({ openUntilMs }: Circuit, nowMs: number, attemptsMax: number): number {
  if (openUntilMs === null) return attemptsMax;
  return nowMs < openUntilMs ? 0 : 1;
}
