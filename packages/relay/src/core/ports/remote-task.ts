import type { A2aMessage, A2aTask, AgentId } from "@a2a-relay/protocol";
import type { RemoteInterface } from "../outbound/remote-interface.ts";

/** A task of ours as an agent elsewhere has it. Ours is the truth, and this says where to look what became of it. */
export interface RemoteTask extends RemoteInterface {
  readonly tenant: string;
  readonly taskId: string;
  readonly agentId: AgentId;
  /** Who wrote to the agent: what the two said to each other before is for nobody else. */
  readonly requester: AgentId;
  readonly threadId: string;
  /** Its name there; null where it was answered with a message, or refused. */
  readonly remoteTaskId: string | null;
  readonly remoteContextId: string | null;
  /** What was answered and is not on record of our task yet. */
  readonly answer: RemoteAnswer | null;
  /** Of the status there that was put on record last; null: none, or it is to be put on record once more. */
  readonly statusDigest: string | null;
  /** When something about it was new the last time. */
  readonly changedAtMs: number;
  /** When it is looked at next; null: there is nothing more to see. */
  readonly nextAtMs: number | null;
  /** Looks in a row that failed, and of those without a failure, that did not find it. */
  readonly failures: number;
  readonly misses: number;
  /** 0 is new. */
  readonly version: number;
}

/** One that is looked at some time, without what was answered. */
export interface TimedRemoteTask extends Pick<RemoteTask, "tenant" | "taskId" | "failures"> {
  readonly origin: string;
  readonly nextAtMs: number;
}

/** The server that is asked; empty where nobody was reached. */
export function originOf({ url }: Pick<RemoteTask, "url">): string {
  return URL.parse(url)?.origin ?? "";
}

/** What an agent elsewhere answered to a message, in A2A 1.0. */
export type RemoteAnswer =
  | { readonly task: A2aTask }
  | { readonly message: A2aMessage }
  /** It does not take the message, for this reason. */
  | { readonly refused: string };

const LOOK_MS_MIN = 250;
const LOOK_MS_MAX = 15_000;
/** Of the time since the last news, so much passes until the next look. */
const LOOK_SHARE = 1 / 4;

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 5 * 60 * 1_000;

/** Failed looks in a row after which the task is given up. They take a little more than an hour. */
export const LOOK_FAILURES_MAX = 21;
/** An agent that does not know its task any more may have been asked at a bad time, once. */
export const LOOK_MISSES_MAX = 2;

/** Soon after there was news, then ever more rarely. */
export function nextPollAtMs({ changedAtMs }: Pick<RemoteTask, "changedAtMs">, nowMs: number): number {
  const waitMs = Math.round((nowMs - changedAtMs) * LOOK_SHARE);
  return nowMs + Math.min(Math.max(waitMs, LOOK_MS_MIN), LOOK_MS_MAX);
}

/** Counted by looks and not by time: while the relay is down nobody fails to answer. */
export function nextRetryAtMs(failures: number, nowMs: number): number {
  return nowMs + Math.min(RETRY_MS_MIN * 2 ** Math.max(failures - 1, 0), RETRY_MS_MAX);
}
