import type { EventDraft, EventType } from "../ports/journal.ts";
import type { PushEndpoint } from "../ports/pushes.ts";

/** A fact about where an agent is called. It never carries a secret. */
export function pushEvent(
  type: Extract<EventType, `push.${string}`>,
  { agentId }: PushEndpoint,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return { type, ...by, agentId, messageId: null, taskId: null, threadId: null, data };
}
