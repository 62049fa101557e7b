import type { PushEndpoint } from "../ports/pushes.ts";

/** Failures in a row that open the circuit. */
export const CIRCUIT_FAILURES_MAX = 5;
const OPEN_MS_MIN = 30_000;
const OPEN_MS_MAX = 600_000;

/** What is kept of an endpoint's failures. */
export type Circuit = Pick<PushEndpoint, "failures" | "openUntilMs">;

export const CLOSED: Circuit = { failures: 0, openUntilMs: null };

/**
 * Enough failures in a row open the circuit, and each failed probe opens it for twice as long. What was under way
 * when it opened and fails later tells nothing new.
 */
export function afterFailure({ failures, openUntilMs }: Circuit, nowMs: number): Circuit {
  if (openUntilMs !== null && nowMs < openUntilMs) return { failures, openUntilMs };
  const count = failures + 1;
  if (count < CIRCUIT_FAILURES_MAX) return { failures: count, openUntilMs: null };
  const openMs = Math.min(OPEN_MS_MIN * 2 ** (count - CIRCUIT_FAILURES_MAX), OPEN_MS_MAX);
  return { failures: count, openUntilMs: nowMs + openMs };
}

/** A receiver that asks for patience gets it for all messages, and never less than the circuit gives it anyway. */
export function leftAlone({ failures, openUntilMs }: Circuit, untilMs: number): Circuit {
  return { failures, openUntilMs: Math.max(openUntilMs ?? 0, untilMs) };
}

/** How many attempts may be under way: none while it is open, one probe when that time is over. */
export function attemptsAllowed({ openUntilMs }: Circuit, nowMs: number, attemptsMax: number): number {
  if (openUntilMs === null) return attemptsMax;
  return nowMs < openUntilMs ? 0 : 1;
}
