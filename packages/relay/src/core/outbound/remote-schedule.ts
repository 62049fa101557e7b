import type { RemoteTask } from "../ports/remote-tasks.ts";

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
