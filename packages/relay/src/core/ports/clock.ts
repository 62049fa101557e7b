/** The source of time, so that tests can stop it. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. */
  nowMs(): number;
  /** Resolves in the next turn of the event loop; long loops await it between their steps. */
  nextTurn(): Promise<void>;
}
