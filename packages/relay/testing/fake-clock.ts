import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../src/core/ports/clock.ts";

/** A time at which nothing special happens. */
export const NOON_MS = Date.parse("2026-05-08T12:00:00Z");

/** Time stands still until a test moves it. */
export class FakeClock implements Clock {
  #nowMs: number;

  constructor(nowMs: number = NOON_MS) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  nextTurn(): Promise<void> {
    return nextTurn();
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
