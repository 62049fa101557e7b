/** How a waiting call is stopped; the last argument of every call that waits. */
export interface WaitOptions {
  /** Aborted when the wait should end. Read only by calls that really wait. */
  readonly signal?: AbortSignal | undefined;
  /** The caller has disconnected and will not read the answer. */
  isGone?(): boolean;
}

export function isGone(waiting: WaitOptions): boolean {
  return waiting.isGone?.() ?? false;
}
