import type { AgentId } from "@a2a-relay/protocol";

export const DEFAULT_TENANT = "default";

/** Who is calling. `from` is checked against it, never believed. */
export type Principal = OperatorPrincipal | AgentPrincipal;

export interface OperatorPrincipal {
  readonly kind: "operator";
  readonly tenant: string;
}

export interface AgentPrincipal {
  readonly kind: "agent";
  readonly tenant: string;
  readonly agentId: AgentId;
}

export function operatorOf(tenant: string): OperatorPrincipal {
  return { kind: "operator", tenant };
}

export function agentOf(tenant: string, agentId: AgentId): AgentPrincipal {
  return { kind: "agent", tenant, agentId };
}

/** How the journal names the caller. */
export function actorName(principal: Principal): string {
  return principal.kind === "agent" ? principal.agentId : "operator";
}
