import { LIMITS } from "@a2a-relay/protocol";
import type { MailboxMessage, MailboxStore } from "../ports/deliveries.ts";
import type { EndpointKey } from "../ports/pushes.ts";

/** Pushes written in one commit: few enough that other callers do not wait long for theirs. */
export const PUSHES_TOGETHER_MAX = 100;

/** What waits in the mailbox behind a position, as much of it as is written in one commit. */
export function messagesAfter(
  store: MailboxStore,
  { tenant, agentId }: EndpointKey,
  afterPosition: number,
  nowMs: number,
): Promise<readonly MailboxMessage[]> {
  const page = { limit: PUSHES_TOGETHER_MAX, bytesMax: LIMITS.answerBytesMax };
  return store.availableMessages({ tenant, agentId, afterPosition, nowMs, ...page });
}
