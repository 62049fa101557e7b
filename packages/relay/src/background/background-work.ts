import type { RetryStalePolicy } from "@a2a-relay/protocol";
import { operatorOf } from "../core/access/principal.ts";
import { CLAIM_MS, workUnit } from "../core/mechanisms/own-claims.ts";
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
  const renew = async (): Promise<boolean> => {
    await core.claims.renew();
    return false;
  };
  stack.use(new IntervalLoop(renew, { intervalMs: CLAIM_MS / 3, report }));
  const inEachTenant = perTenant(core, report);
  const removals = inEachTenant("removals", async (tenant) => {
    await core.agents.finishRemovals(operatorOf(tenant));
    return false;
  }).then(() => undefined, report);
  stack.defer(() => removals);
  // At once, so that a journal that was cut while the relay was down is reported.
  const anchor = (): Promise<boolean> =>
    claimed(core, ["anchors"], async () => {
      await core.anchoring.keepAll();
      return false;
    });
  const anchored = anchor().then(() => undefined, report);
  stack.defer(() => anchored);
  stack.use(new IntervalLoop(anchor, { intervalMs: anchorIntervalMs, report }));
  const sweep = (): Promise<boolean> => claimed(core, ["expiry"], async () => (await core.sweep.step()).more);
  stack.use(new IntervalLoop(sweep, { intervalMs: sweepIntervalMs, report }));
  const retire = (): Promise<boolean> =>
    inEachTenant("retention", async (tenant) => (await core.retention.step(tenant)).more);
  stack.use(new IntervalLoop(retire, { intervalMs: RETENTION_INTERVAL_MS, report }));
  stack.use(new Pusher(core, report));
  stack.use(new RemotePoller(core, report));
  stack.use(new TaskPusher(core, report));
  if (retryScheduler !== undefined) {
    const scan = (): Promise<boolean> =>
      inEachTenant("retries", async (tenant) => {
        await core.repairs.retryOnSchedule(operatorOf(tenant), retryScheduler.policy);
        return false;
      });
    stack.use(new IntervalLoop(scan, { intervalMs: retryScheduler.intervalMs, report }));
  }
  return stack;
}

/** Runs a step of a named sweep, true when there is more to do, unless another process runs one. */
async function claimed(
  { claims }: RelayCore,
  name: readonly string[],
  step: () => Promise<boolean>,
): Promise<boolean> {
  const [claim] = await claims.take([workUnit("sweep", ...name)]);
  if (claim === undefined) return false;
  try {
    return await step();
  } finally {
    await claims.release(claim);
  }
}

/** Runs a step in each tenant; true when one has more to do. Reports a failure in one tenant and continues. */
function perTenant(
  core: RelayCore,
  report: (reason: unknown) => void,
): (sweep: string, step: (tenant: string) => Promise<boolean>) => Promise<boolean> {
  return async (sweep, step) => {
    let more = false;
    for (const { id } of await core.tenants.all()) {
      try {
        more = (await claimed(core, [sweep, id], () => step(id))) || more;
      } catch (reason) {
        report(reason);
      }
    }
    return more;
  };
}
