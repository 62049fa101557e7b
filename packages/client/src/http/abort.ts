interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/** The callbacks of each signal that has any. */
const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back once when the signal is aborted. The caller must call the returned function in the end: a signal may live
 * for weeks. A signal gets one listener for all callbacks, because Node warns of a leak from eleven listeners on.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  const listeners = LISTENERS.get(signal) ?? listenTo(signal);
  // Wrapped, so that a caller may pass the same function twice.
  const entry = (): void => callback();
  listeners.callbacks.add(entry);
  return () => {
    listeners.callbacks.delete(entry);
    if (listeners.callbacks.size > 0 || LISTENERS.get(signal) !== listeners) return;
    LISTENERS.delete(signal);
    signal.removeEventListener("abort", listeners.listener);
  };
}

function listenTo(signal: AbortSignal): Listeners {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    for (const callback of callbacks) callback();
  };
  const listeners = { callbacks, listener };
  signal.addEventListener("abort", listener, { once: true });
  LISTENERS.set(signal, listeners);
  return listeners;
}

/** Rejects with the signal's reason as soon as it is aborted. */
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
