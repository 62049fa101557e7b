import { type AgentId, type DuplicateRisk, quote, RelayError } from "@a2a-relay/protocol";
import type { EventDraft } from "../ports/journal.ts";
import { PAIRED_VERBS, pairedAction, type PairedVerb } from "../rules/paired-action.ts";

const PLAIN = ["a2a.repair.requeue", "a2a.repair.force_error", "a2a.compact"] as const;
export type PlainAction = (typeof PLAIN)[number];

/** An action that can be granted: a verb with one other agent, or a plain action on the caller's own tasks. */
export type WrittenAction =
  | { readonly verb: PairedVerb; readonly peer: string }
  | { readonly plain: PlainAction };

/** Accepts no wildcards, so that a grant never means more than it says. */
export function parseAction(text: string): WrittenAction {
  const plain = PLAIN.find((each) => each === text);
  if (plain !== undefined) return { plain };
  for (const verb of PAIRED_VERBS) {
    const prefix = `a2a.${verb}.`;
    const peer = text.startsWith(prefix) ? text.slice(prefix.length) : "";
    if (peer !== "" && !peer.includes("*")) return { verb, peer };
  }
  throw new RelayError(
    "invalid_argument",
    `action: ${quote(text)} is none of ${[...PAIRED_VERBS.map((verb) => `a2a.${verb}.<agent>`), ...PLAIN].join(", ")}; there are no wildcards`,
  );
}

/** A message that creates a task, or asks for more work on it. */
export interface SendDemand {
  readonly kind: "send";
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly taskId: string | undefined;
  /** The name that the requester gave the task. */
  readonly clientTaskId: string | null | undefined;
}

/** The worker's message or call that answers a task, changes its state, or adds to it. */
export interface RespondDemand {
  readonly kind: "respond";
  readonly responder: AgentId;
  readonly requester: AgentId;
  readonly taskId: string;
  readonly clientTaskId: string | null;
  readonly leaseId: string | undefined;
}

/** A repair before the relay has read the task or message that it names. */
export interface RepairWish {
  readonly kind: "repair";
  readonly action: "requeue" | "force_error";
  /** The task or message as the caller named it. */
  readonly name: string;
}

export interface RepairDemand extends RepairWish {
  readonly parties: readonly AgentId[];
  readonly taskId: string | null;
  readonly clientTaskId: string | null;
  readonly leaseId: string | undefined;
  readonly duplicateRisk: DuplicateRisk | undefined;
}

/** An act for which a tenant may require capabilities. */
export type Demand =
  | SendDemand
  | RespondDemand
  | RepairDemand
  | { readonly kind: "retry" }
  | { readonly kind: "compact" };

/** The result of one check, as the journal keeps it. */
export interface CheckOutcome {
  /** With agents' names, for people. */
  readonly required: readonly string[];
  readonly missing: readonly string[];
  /** One capability id for each required action, in the same order; for an operator, its name instead. */
  readonly authorizedBy: readonly string[];
  readonly passed: boolean;
  readonly reason?: string | undefined;
}

/** The event names no message, so that receipts do not show who was allowed what. */
export function checkEvent(
  demand: Demand | RepairWish,
  { required, missing, passed, authorizedBy, reason }: CheckOutcome,
  by: { readonly actor: string; readonly atMs: number },
): EventDraft {
  return {
    type: "capability_check",
    ...by,
    agentId: counterpartOf(demand),
    messageId: null,
    taskId: "taskId" in demand ? (demand.taskId ?? null) : null,
    threadId: null,
    data: {
      agent_id: subjectOf(demand),
      required_actions: required,
      missing_actions: missing,
      passed,
      authorized_by: authorizedBy,
      ...(reason === undefined ? {} : { reason }),
    },
  };
}

/** The actions that the act requires, with agents' names. */
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

/** The act as a refusal names it. */
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
