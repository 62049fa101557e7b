import { setTimeout as after } from "node:timers/promises";

/** Waits for that long, or until there is no more use in waiting. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await after(ms, undefined, { signal, ref: false }).catch(() => undefined);
}
