import { DEFAULT_TENANT, operatorOf } from "../core/access/principal.ts";
import type { RelayCore } from "../core/relay-core.ts";
import type { RetryStalePolicy } from "@a2a-relay/protocol";
import { Repeating } from "./repeating.ts";

export interface BackgroundSettings {
  readonly sweepIntervalMs: number;
  readonly retryScheduler:
    | { readonly intervalMs: number; readonly policy: Omit<RetryStalePolicy, "enabled"> }
    | undefined;
}

/** Old mail is in no hurry. */
const RETENTION_INTERVAL_MS = 60_000;

/** All that runs by itself: the clock's sweep, retention, and the retry scheduler where it is switched on. */
export function startBackgroundWork(
  core: RelayCore,
  settings: BackgroundSettings,
  report: (reason: unknown) => void,
): AsyncDisposable {
  const stack = new AsyncDisposableStack();
  const { sweepIntervalMs, retryScheduler } = settings;
  const removals = core.agents.finishRemovals(operatorOf(DEFAULT_TENANT)).catch(report);
  stack.defer(() => removals);
  const sweep = async (): Promise<boolean> => (await core.sweep.step()).more;
  stack.use(new Repeating(sweep, { intervalMs: sweepIntervalMs, report }));
  const retire = async (): Promise<boolean> => (await core.retention.step(DEFAULT_TENANT)).more;
  stack.use(new Repeating(retire, { intervalMs: RETENTION_INTERVAL_MS, report }));
  if (retryScheduler !== undefined) {
    const scan = async (): Promise<boolean> => {
      await core.repairs.retryOnSchedule(operatorOf(DEFAULT_TENANT), retryScheduler.policy);
      return false;
    };
    stack.use(new Repeating(scan, { intervalMs: retryScheduler.intervalMs, report }));
  }
  return stack;
}
