const LOOKS_MS_MAX = 20_000;

/** Looks again and again until it is as wanted. Each look is a request, so that none of them is in a hurry. */
export async function eventually<Value>(
  look: () => Promise<Value>,
  isThere: (value: Value) => boolean,
): Promise<Value> {
  const endMs = performance.now() + LOOKS_MS_MAX;
  for (;;) {
    const value = await look();
    if (isThere(value)) return value;
    if (performance.now() > endMs) throw new Error(`it never came; at last: ${JSON.stringify(value)}`);
  }
}
