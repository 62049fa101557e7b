import type { AgentId } from "@a2a-relay/protocol";
import type { EventDraft } from "../ports/journal.ts";

export function agentEvent(
  type: "agent.registered" | "agent.updated" | "agent.removed",
  agentId: AgentId,
  by: { readonly actor: string; readonly atMs: number },
  data: Readonly<Record<string, unknown>>,
): EventDraft {
  return { type, ...by, agentId, messageId: null, taskId: null, threadId: null, data };
}
