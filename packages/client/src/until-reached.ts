import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { pause } from "./pause.ts";
import { type RetryDelays, retryDelayMs } from "./retry-delay.ts";

export interface Patience {
  readonly signal: AbortSignal;
  readonly delays: RetryDelays;
  /** Told each time, so that a long absence does not go unnoticed. */
  readonly onAway: (error: RelayError) => void;
}

/**
 * Repeats a call for as long as the relay is away or overloaded. Only for what may happen twice without
 * harm; any other refusal is thrown at once.
 */
export async function untilReached<T>(call: () => Promise<T>, patience: Patience): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (reason) {
      patience.signal.throwIfAborted();
      if (!isAway(reason)) throw reason;
      patience.onAway(reason);
    }
    await pause(retryDelayMs(attempt, patience.delays), patience);
  }
}

const AWAY_CODES: readonly RelayErrorCode[] = ["unavailable", "resource_exhausted", "storage_full"];

/** After a loss of its data, the relay has to be told of the agent anew. */
export function isUnknownAgent(reason: unknown): reason is RelayError {
  if (!(reason instanceof RelayError)) return false;
  return reason.code === "not_found" || reason.code === "unknown_agent";
}

export function isAway(reason: unknown): reason is RelayError {
  return reason instanceof RelayError && isAwayCode(reason.code);
}

export function isAwayCode(code: RelayErrorCode): boolean {
  return AWAY_CODES.includes(code);
}
