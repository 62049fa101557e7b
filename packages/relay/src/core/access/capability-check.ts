import type { AgentId } from "@a2a-relay/protocol";
import type { EventData, EventDraft } from "../ports/journal.ts";
import { pairedAction } from "./capability-action.ts";
import type { Demand, RepairWish } from "./capability-gate.ts";

/** How one check ended, as the journal keeps it. */
export interface CheckOutcome {
  /** With names, as people know them. */
  readonly required: readonly string[];
  readonly missing: readonly string[];
  /** The capability for each of the required actions, in their order, or the operator whose own right it was. */
  readonly authorizedBy: readonly string[];
  readonly passed: boolean;
  readonly reason?: string | undefined;
}

/** One check, one entry. It hangs on no message: the receipts of a message need not show who was allowed what. */
export function checkEvent(
  demand: Demand | RepairWish,
  data: EventData,
  by: { readonly actor: string; readonly atMs: number },
): EventDraft {
  return {
    type: "capability_check",
    ...by,
    agentId: counterpartOf(demand),
    messageId: null,
    taskId: "taskId" in demand ? (demand.taskId ?? null) : null,
    threadId: null,
    data,
  };
}

export function checkData(demand: Demand | RepairWish, outcome: CheckOutcome): EventData {
  const { required, missing, passed, authorizedBy, reason } = outcome;
  return {
    agent_id: subjectOf(demand),
    required_actions: required,
    missing_actions: missing,
    passed,
    authorized_by: authorizedBy,
    ...(reason === undefined ? {} : { reason }),
  };
}

/** What the act needs, by name. */
export function requiredActions(demand: Demand | RepairWish): readonly string[] {
  switch (demand.kind) {
    case "send":
      return [pairedAction("send", demand.recipient), pairedAction("recv", demand.sender)];
    case "respond":
      return [pairedAction("respond", demand.requester)];
    case "repair":
      return [`a2a.repair.${demand.action}`];
    case "retry":
      return ["a2a.repair.requeue"];
    default:
      return ["a2a.compact"];
  }
}

/** The act in the words of its refusal. */
export function actOf(demand: Demand | RepairWish): string {
  switch (demand.kind) {
    case "send":
      return `a2a send to ${demand.recipient}`;
    case "respond":
      return `a2a respond to task ${demand.clientTaskId ?? demand.taskId}`;
    case "repair":
      return `a2a repair of ${demand.name}`;
    case "retry":
      return "a2a retry-stale";
    default:
      return "a2a compact";
  }
}

function subjectOf(demand: Demand | RepairWish): string {
  switch (demand.kind) {
    case "send":
      return `a2a-send:${demand.recipient}`;
    case "respond":
      return `a2a-respond:${demand.clientTaskId ?? demand.taskId}`;
    case "repair":
      return `a2a-repair:${demand.name}`;
    case "retry":
      return "a2a-auto-retry";
    default:
      return "a2a:compact";
  }
}

function counterpartOf(demand: Demand | RepairWish): AgentId | null {
  if (demand.kind === "send") return demand.recipient;
  return demand.kind === "respond" ? demand.requester : null;
}
