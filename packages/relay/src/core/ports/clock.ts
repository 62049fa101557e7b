/** The source of time, so that tests can stop it. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. */
  nowMs(): number;
  /** Lets other work run; long scans await it between their steps. */
  nextTurn(): Promise<void>;
}
