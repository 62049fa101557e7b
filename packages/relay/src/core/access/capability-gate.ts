import type { AgentId, DuplicateRisk } from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { Principal } from "./principal.ts";

/** A message that makes a task, or asks for more of it. */
export interface SendDemand {
  readonly kind: "send";
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly taskId: string | undefined;
  /** The name that its requester gave the task, where it has one. */
  readonly clientTaskId: string | null | undefined;
}

/** A message or call that answers a task, moves it, or adds to it, from the agent that works on it. */
export interface RespondDemand {
  readonly kind: "respond";
  readonly responder: AgentId;
  readonly requester: AgentId;
  readonly taskId: string;
  readonly clientTaskId: string | null;
  readonly leaseId: string | undefined;
}

/** All that is known of a repair before it has been looked up what it is about. */
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

/** What somebody is about to do that a tenant may want capabilities for. */
export type Demand =
  | SendDemand
  | RespondDemand
  | RepairDemand
  | { readonly kind: "retry" }
  | { readonly kind: "compact" };

/** What goes into the same commit as the act: the check on record, and the uses that it took. */
export type GatePass = Pick<Partial<Changes>, "capabilities" | "events">;

/** The one place where capabilities are asked for, on every wire alike. */
export interface CapabilityGate {
  /**
   * Refuses with `permission_denied`, on record, or answers what to commit together with the act. Where the
   * tenant has capabilities off, agents pass whatever is theirs, and only operators repair.
   */
  pass(principal: Principal, demand: Demand): Promise<GatePass>;
  /**
   * The first half of a repair's pass: whoever holds no such capability at all is refused before anything is
   * looked up that it may not know of.
   */
  assertMayRepair(principal: Principal, wish: RepairWish): Promise<void>;
  /** What the caller wants to repair is none of its business, or not there: on record as a failed check. */
  recordUnseen(principal: Principal, wish: RepairWish): Promise<void>;
}
