/** How a caller that waits is stopped, and whether it is still there: last argument of whatever waits. */
export interface WaitOptions {
  /** Aborted when waiting is of no use any more. Looked at only by those who really wait. */
  readonly signal?: AbortSignal | undefined;
  /** Nobody is left to read the answer. */
  isGone?(): boolean;
}

export function isGone(waiting: WaitOptions): boolean {
  return waiting.isGone?.() ?? false;
}
