import type { RetryStalePolicy } from "@a2a-relay/protocol";
import { operatorOf } from "../core/access/principal.ts";
import type { RelayCore } from "../core/relay-core.ts";
import { Pusher } from "./pusher.ts";
import { RemotePoller } from "./remote-poller.ts";
import { IntervalLoop } from "./loops.ts";
import { TaskPusher } from "./task-pusher.ts";

export interface BackgroundSettings {
  readonly sweepIntervalMs: number;
  readonly anchorIntervalMs: number;
  readonly retryScheduler:
    | { readonly intervalMs: number; readonly policy: Omit<RetryStalePolicy, "enabled"> }
    | undefined;
}

const RETENTION_INTERVAL_MS = 60_000;

/** Starts pushes, polls of remote tasks, the sweep, anchors, retention, and the retry scheduler where it is on. */
export function startBackgroundWork(
  core: RelayCore,
  settings: BackgroundSettings,
  report: (reason: unknown) => void,
): AsyncDisposable {
  const stack = new AsyncDisposableStack();
  const { sweepIntervalMs, anchorIntervalMs, retryScheduler } = settings;
  const inEachTenant = perTenant(core, report);
  const removals = inEachTenant(async (tenant) => {
    await core.agents.finishRemovals(operatorOf(tenant));
    return false;
  }).then(() => undefined, report);
  stack.defer(() => removals);
  // At once, so that a journal that was cut while the relay was down is reported.
  const anchored = core.anchoring.keepAll().catch(report);
  stack.defer(() => anchored);
  const anchor = async (): Promise<boolean> => {
    await core.anchoring.keepAll();
    return false;
  };
  stack.use(new IntervalLoop(anchor, { intervalMs: anchorIntervalMs, report }));
  const sweep = async (): Promise<boolean> => (await core.sweep.step()).more;
  stack.use(new IntervalLoop(sweep, { intervalMs: sweepIntervalMs, report }));
  const retire = (): Promise<boolean> =>
    inEachTenant(async (tenant) => (await core.retention.step(tenant)).more);
  stack.use(new IntervalLoop(retire, { intervalMs: RETENTION_INTERVAL_MS, report }));
  stack.use(new Pusher(core.pushDelivery, report));
  stack.use(new RemotePoller(core.remoteWork, report));
  stack.use(new TaskPusher(core.taskPushDelivery, report));
  if (retryScheduler !== undefined) {
    const scan = (): Promise<boolean> =>
      inEachTenant(async (tenant) => {
        await core.repairs.retryOnSchedule(operatorOf(tenant), retryScheduler.policy);
        return false;
      });
    stack.use(new IntervalLoop(scan, { intervalMs: retryScheduler.intervalMs, report }));
  }
  return stack;
}

/** Runs a step in each tenant; true when one has more to do. Reports a failure in one tenant and continues. */
function perTenant(
  core: RelayCore,
  report: (reason: unknown) => void,
): (step: (tenant: string) => Promise<boolean>) => Promise<boolean> {
  return async (step) => {
    let more = false;
    for (const { id } of await core.tenants.all()) {
      try {
        more = (await step(id)) || more;
      } catch (reason) {
        report(reason);
      }
    }
    return more;
  };
}
