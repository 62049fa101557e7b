/** Time comes in from outside, so that tests can stand still. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. */
  nowMs(): number;
  /** Lets everybody else have a turn; long walks call it between their steps. */
  nextTurn(): Promise<void>;
}
