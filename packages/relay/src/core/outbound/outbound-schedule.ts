import { LIMITS } from "@a2a-relay/protocol";
import type { RemoteTask } from "../ports/remote-tasks.ts";

/** An attempt of a push that did not get through. */
export interface FailedAttempt {
  /** Its number in the round; 1 is the first. */
  readonly attempt: number;
  readonly endedAtMs: number;
  /** `Retry-After` as it came. */
  readonly retryAfter: string | undefined;
}

/**
 * When the next attempt is due; undefined when all are used up. The offsets say when attempts are made, counted
 * from the first; the gap between two of them is counted from the end of the one that failed, so that a receiver
 * that takes its time to fail is left alone as long as any other.
 */
export function nextAttemptAtMs(failed: FailedAttempt, offsetsMs: readonly number[]): number | undefined {
  const offsetMs = offsetsMs[failed.attempt - 1];
  const nextOffsetMs = offsetsMs[failed.attempt];
  if (offsetMs === undefined || nextOffsetMs === undefined) return undefined;
  const patienceMs = readRetryAfter(failed.retryAfter, failed.endedAtMs) ?? 0;
  return failed.endedAtMs + Math.max(nextOffsetMs - offsetMs, patienceMs);
}

/** How long a receiver wants to be left alone: seconds or an HTTP date, never more than the limit. */
export function readRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  const waitMs = /^\d+$/.test(text.trim()) ? Number(text) * 1_000 : readHttpDate(text) - nowMs;
  if (Number.isNaN(waitMs)) return undefined;
  return Math.min(Math.max(waitMs, 0), LIMITS.pushRetryAfterMsMax);
}

/** As HTTP writes them, in GMT. `Date` would read much more than that, a bare year for one. */
const HTTP_DATE = /^[A-Z][a-z]+,? .+ (GMT|\d{4})$/;

function readHttpDate(text: string): number {
  const date = text.trim();
  if (!HTTP_DATE.test(date)) return Number.NaN;
  // The old form of asctime names no zone and means GMT too.
  return Date.parse(date.endsWith("GMT") ? date : `${date} GMT`);
}

/** When the first attempt is due: counted from when the message was accepted, so that none overtakes another. */
export function firstAttemptAtMs(acceptedAtMs: number, offsetsMs: readonly number[]): number {
  return acceptedAtMs + (offsetsMs[0] ?? 0);
}

/** The server that is asked; empty where nobody was reached. */
export function originOf({ url }: Pick<RemoteTask, "url">): string {
  return URL.parse(url)?.origin ?? "";
}

const LOOK_MS_MIN = 250;
const LOOK_MS_MAX = 15_000;
/** Of the time since the last news, so much passes until the next look. */
const LOOK_SHARE = 1 / 4;

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 5 * 60 * 1_000;

/** Failed looks in a row after which the task is given up. They take a little more than an hour. */
export const LOOK_FAILURES_MAX = 21;
/** An agent that does not know its task any more may have been asked at a bad time, once. */
export const LOOK_MISSES_MAX = 2;

/** Soon after there was news, then ever more rarely. */
export function nextPollAtMs({ changedAtMs }: Pick<RemoteTask, "changedAtMs">, nowMs: number): number {
  const waitMs = Math.round((nowMs - changedAtMs) * LOOK_SHARE);
  return nowMs + Math.min(Math.max(waitMs, LOOK_MS_MIN), LOOK_MS_MAX);
}

/** Counted by looks and not by time: while the relay is down nobody fails to answer. */
export function nextRetryAtMs(failures: number, nowMs: number): number {
  return nowMs + Math.min(RETRY_MS_MIN * 2 ** Math.max(failures - 1, 0), RETRY_MS_MAX);
}
