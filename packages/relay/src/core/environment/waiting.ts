/** How a caller that waits is stopped: last argument of whatever waits. */
export interface Waiting {
  readonly signal?: AbortSignal | undefined;
}

/** The reason of an abort when nobody is left to read the answer. Any other abort only ends the waiting. */
export const CALLER_GONE = "the caller has gone";

export function isGone({ signal }: Waiting): boolean {
  return signal?.aborted === true && signal.reason === CALLER_GONE;
}
