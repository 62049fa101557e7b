
interface Audience {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/** Who wants to hear of which signal. An entry lives for as long as somebody does. */
const AUDIENCES = new WeakMap<AbortSignal, Audience>();

/**
 * Calls back once when the signal is aborted. The answer takes that back, and must be called in the end: a
 * signal may live for weeks. However many callbacks there are, the signal gets one listener, because Node
 * warns of a leak from eleven on, and an agent with many handlers at work has more than that.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  const audience = AUDIENCES.get(signal) ?? gather(signal);
  // Wrapped, so that the same function may be given twice.
  const entry = (): void => callback();
  audience.callbacks.add(entry);
  return () => {
    audience.callbacks.delete(entry);
    if (audience.callbacks.size > 0 || AUDIENCES.get(signal) !== audience) return;
    AUDIENCES.delete(signal);
    signal.removeEventListener("abort", audience.listener);
  };
}

function gather(signal: AbortSignal): Audience {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    for (const callback of callbacks) callback();
  };
  const audience = { callbacks, listener };
  signal.addEventListener("abort", listener, { once: true });
  AUDIENCES.set(signal, audience);
  return audience;
}

/** Resolves after the time, or rejects with the signal's reason as soon as it is aborted. */
export function pause(
  durationMs: number,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const unsubscribe = onAbort(signal, () => {
      unsubscribe();
      clearTimeout(timer);
      reject(signal?.reason);
    });
    const timer = setTimeout(() => {
      unsubscribe();
      resolve();
    }, durationMs);
  });
}

/** Resolves as soon as the promise settles, or after the time, whichever is first. Never rejects. */
export async function settledWithin(durationMs: number, promise: Promise<unknown>): Promise<void> {
  const settled = new AbortController();
  const settle = (): void => settled.abort();
  promise.then(settle, settle);
  await pause(durationMs, settled).catch(() => undefined);
}
