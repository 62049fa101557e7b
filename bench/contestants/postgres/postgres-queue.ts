import type { LoopEnd } from "../../load/closed-loop.ts";

/** A queue on PostgreSQL that a program calls without a server in between. It ends with its process. */
export interface PostgresQueue {
  /** Resolves when the message is on disk. */
  send(number: number): Promise<void>;
  /** Resolves when the message is on disk, and one message was taken and settled. */
  roundTrip(number: number): Promise<void>;
  /** Waits for what is left to do after round trips. */
  settle?(): Promise<void>;
}

export const QUEUES = ["relay", "pg-boss", "graphile-worker"] as const;
export type QueueName = (typeof QUEUES)[number];

export type QueueAct = "send" | "roundTrip";

/** So many callers at the same time, in the process of the queue. */
export interface CallOrder {
  readonly act: QueueAct;
  readonly callers: number;
  readonly end: LoopEnd;
}
