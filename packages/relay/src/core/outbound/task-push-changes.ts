import { nextAttemptAtMs, readRetryAfter } from "./push-schedule.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { hasNothingBehind } from "./task-push-config.ts";
import type { TaskPushConfig } from "../ports/task-pushes.ts";

/** Updates in a row that nobody took: then nobody is there. */
export const GIVEN_UP_MAX = 3;

type FailedOutcome = Exclude<PushOutcome, { readonly kind: "delivered" }>;

/** All updates up to `n` have arrived. */
export function afterArrival(
  config: TaskPushConfig,
  task: TaskRecord,
  { n, nowMs }: { readonly n: number; readonly nowMs: number },
): TaskPushConfig {
  return { ...toldUpTo(config, task, n, nowMs), givenUp: 0, reason: null };
}

/** Update `n` is tried again later, or given up for the next; a receiver that wants no more gets no more. */
export function afterFailure(
  config: TaskPushConfig,
  task: TaskRecord,
  outcome: FailedOutcome,
  at: { readonly n: number; readonly nowMs: number; readonly offsetsMs: readonly number[] },
): TaskPushConfig {
  const { reason } = outcome;
  const attempts = config.attempts + 1;
  if (outcome.kind === "gone") return { ...config, state: "ended", reason, attempts, nextAtMs: null };
  const retryAfter = "retryAfter" in outcome ? outcome.retryAfter : undefined;
  const failed = { attempt: attempts, endedAtMs: at.nowMs, retryAfter };
  const nextAtMs = nextAttemptAtMs(failed, at.offsetsMs);
  if (nextAtMs !== undefined) return { ...config, reason, attempts, nextAtMs };
  const givenUp = config.givenUp + 1;
  const patientMs = at.nowMs + (readRetryAfter(retryAfter, at.nowMs) ?? 0);
  const moved = { ...toldUpTo(config, task, at.n, patientMs), givenUp, reason };
  const isOver = givenUp >= GIVEN_UP_MAX || moved.state === "ended";
  return isOver ? { ...moved, state: "failed", nextAtMs: null } : moved;
}

/** The cursor behind update `n`, and the next one due at the time given, where there is one. */
export function toldUpTo(
  config: TaskPushConfig,
  task: TaskRecord,
  n: number,
  nextAtMs: number,
): TaskPushConfig {
  return {
    ...config,
    afterN: n,
    attempts: 0,
    nextAtMs: n < task.updateCount ? nextAtMs : null,
    state: hasNothingBehind(task, n) ? "ended" : "active",
  };
}
