import type { RemoteTask } from "../ports/remote-tasks.ts";

/**
 * The units of one kind of outbound work (messages of an endpoint, push configurations, remote tasks) that are due now.
 * Each kind goes through the same steps: choose due units, attempt, record the outcome, wait for the retry.
 */
export interface DueWork<Unit> {
  readonly due: readonly Unit[];
  /** Nothing else is due for so long, unless the store changes. */
  readonly waitMs: number;
}

/** A failed attempt of a push. */
export interface FailedAttempt {
  /** Its number in the round; 1 is the first. */
  readonly attempt: number;
  readonly endedAtMs: number;
  /** The receiver asks not to be called for so long. */
  readonly retryAfterMs: number;
}

/** Counted from when the message was accepted, so that pushes keep the order of their messages. */
export function firstAttemptAtMs(acceptedAtMs: number, offsetsMs: readonly number[]): number {
  return acceptedAtMs + (offsetsMs[0] ?? 0);
}

/**
 * When the next attempt is due; undefined after the last. The offsets are counted from the first attempt. The gap
 * between two of them is counted from the end of the failed attempt, so that slow receivers get the whole gap too.
 */
export function nextAttemptAtMs(failed: FailedAttempt, offsetsMs: readonly number[]): number | undefined {
  const offsetMs = offsetsMs[failed.attempt - 1];
  const nextOffsetMs = offsetsMs[failed.attempt];
  if (offsetMs === undefined || nextOffsetMs === undefined) return undefined;
  return failed.endedAtMs + Math.max(nextOffsetMs - offsetMs, failed.retryAfterMs);
}

const POLL_MS_MIN = 250;
const POLL_MS_MAX = 15_000;
/** The next poll comes after this share of the time since the remote task last changed. */
const POLL_SHARE = 1 / 4;

const POLL_RETRY_MS_MIN = 1_000;
const POLL_RETRY_MS_MAX = 5 * 60 * 1_000;

/** Failed polls in a row after which the relay gives up a remote task. They take a little more than an hour. */
export const POLL_FAILURES_MAX = 21;
/** Polls in a row that may answer that the task is unknown. */
export const POLL_MISSES_MAX = 2;

/** Soon after a change, then less and less often. */
export function nextPollAtMs({ changedAtMs }: Pick<RemoteTask, "changedAtMs">, nowMs: number): number {
  const waitMs = Math.round((nowMs - changedAtMs) * POLL_SHARE);
  return nowMs + Math.min(Math.max(waitMs, POLL_MS_MIN), POLL_MS_MAX);
}

/** Counts failed polls, not time: while the relay is down no poll fails. */
export function nextPollRetryAtMs(failures: number, nowMs: number): number {
  return nowMs + Math.min(POLL_RETRY_MS_MIN * 2 ** Math.max(failures - 1, 0), POLL_RETRY_MS_MAX);
}
