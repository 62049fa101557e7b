const POLL_MS_MAX = 20_000;

/** Polls until the value is as wanted. Each poll is a request, so that the loop is not busy. */
export async function eventually<Value>(
  poll: () => Promise<Value>,
  isThere: (value: Value) => boolean,
): Promise<Value> {
  const endMs = performance.now() + POLL_MS_MAX;
  for (;;) {
    const value = await poll();
    if (isThere(value)) return value;
    if (performance.now() > endMs) throw new Error(`it never came; at last: ${JSON.stringify(value)}`);
  }
}
