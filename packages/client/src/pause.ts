import { onAbort } from "./on-abort.ts";

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
