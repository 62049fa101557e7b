import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 10;
const POLL_MS_MAX = 20_000;

/** Polls, with a short pause, until the value is as wanted. */
export async function eventually<Value>(
  poll: () => Promise<Value>,
  isThere: (value: Value) => boolean,
): Promise<Value> {
  const endMs = performance.now() + POLL_MS_MAX;
  for (;;) {
    const value = await poll();
    if (isThere(value)) return value;
    if (performance.now() > endMs) throw new Error(`it never came; at last: ${JSON.stringify(value)}`);
    await sleep(POLL_MS);
  }
}
