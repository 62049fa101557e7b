import { setTimeout as sleep } from "node:timers/promises";
import { type A2aStreamEvent, isTerminalState, type RelayClient } from "@a2a-relay/client";
import { RelayError, type RelayErrorCode } from "@a2a-relay/protocol";

/** A step of a task, with its number. */
export type TaskStep = A2aStreamEvent & { readonly eventId: string };

export interface FollowedFrom {
  /** Whom the task was asked of. */
  readonly agentId: string;
  readonly taskId: string;
  /** The number of the last step that is known. */
  readonly afterId: string;
}

/** The number before that of the first step. */
export const NO_STEP = "0";

const AWAY_CODES: readonly RelayErrorCode[] = ["unavailable", "resource_exhausted"];
const AWAY_MS = 1_000;

/**
 * Every step of a task behind the known ones, each once and in order, until it is over or its reader leaves. While the
 * relay is away it waits for it.
 */
export async function* taskSteps(
  client: RelayClient,
  { agentId, taskId, afterId }: FollowedFrom,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<TaskStep, void, void> {
  const agent = client.a2a(agentId);
  let lastEventId = afterId;
  for (;;) {
    try {
      for await (const event of agent.subscribe(taskId, { lastEventId, signal })) {
        const { eventId } = event;
        // A client that may not follow looks at the task instead, which does not tell how it came to be as it is.
        if (eventId === undefined) break;
        lastEventId = eventId;
        yield { ...event, eventId };
        if (isOver(event)) return;
      }
    } catch (reason) {
      signal.throwIfAborted();
      if (!(reason instanceof RelayError) || !AWAY_CODES.includes(reason.code)) throw reason;
    }
    await sleep(AWAY_MS, undefined, { signal }).catch(() => undefined);
    signal.throwIfAborted();
  }
}

function isOver({ statusUpdate }: A2aStreamEvent): boolean {
  return isTerminalState(statusUpdate?.status.state);
}
