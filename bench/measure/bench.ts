import type { Figure } from "../figure.ts";
import type { Cores } from "../machine/cores.ts";

/** What every measure needs to know. */
export interface Bench {
  readonly cores: Cores;
  /** On a real disk; removed when the bench ends. */
  readonly directory: string;
  readonly connections: number;
  /** How often the contestants of a measure are started. */
  readonly starts: number;
  /** After each start. */
  readonly rounds: number;
  readonly roundMs: number;
  readonly warmUpMs: number;
  /** Stored messages at which costs are compared; the last is the promise. */
  readonly storedMessages: readonly number[];
  readonly growthRounds: number;
  readonly waitingReaders: number;
  /** Streams that are open at one time, where the machine allows so many. */
  readonly openStreams: number;
  /** Round trips of one relay on PostgreSQL, over which their cost should stay the same. */
  readonly flatCycles: number;
  /** After that it ends with fewer of them. */
  readonly flatMsMax: number;
  /** Says what is being done, for people who wait. */
  readonly progress: (text: string) => void;
}

export type Measure = (bench: Bench) => Promise<readonly Figure[]>;

export const FULL: Omit<Bench, "cores" | "directory" | "progress"> = {
  connections: 64,
  starts: 3,
  rounds: 3,
  roundMs: 2_500,
  warmUpMs: 7_000,
  storedMessages: [1_000, 100_000, 1_000_000],
  growthRounds: 15,
  waitingReaders: 1_000,
  openStreams: 10_000,
  flatCycles: 1_000_000,
  flatMsMax: 900_000,
};

export const QUICK: typeof FULL = {
  ...FULL,
  starts: 1,
  rounds: 3,
  roundMs: 1_000,
  warmUpMs: 5_000,
  storedMessages: [1_000, 100_000],
  growthRounds: 7,
  openStreams: 2_000,
  flatCycles: 20_000,
  flatMsMax: 18_000,
};
