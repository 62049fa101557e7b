import type { AgentId, Verb } from "@a2a-relay/protocol";

export const DEFAULT_TENANT = "default";

/** Who is calling. The relay checks `from` against it and never trusts `from` alone. */
export type Principal = OperatorPrincipal | AgentPrincipal;

interface Credential {
  readonly tenant: string;
  /** The key that the caller sent; absent under local trust and for the key of the configuration. */
  readonly keyId?: string;
  /** The verbs that the key is limited to; absent: all that its holder may do. */
  readonly verbs?: ReadonlySet<Verb>;
  /** When the key ends; absent: never. */
  readonly expiresAtMs?: number;
}

export interface OperatorPrincipal extends Credential {
  readonly kind: "operator";
  /** The relay's operator, who may act in every tenant. */
  readonly isRoot: boolean;
}

export interface AgentPrincipal extends Credential {
  readonly kind: "agent";
  readonly agentId: AgentId;
}

export function operatorOf(tenant: string): OperatorPrincipal {
  return { kind: "operator", tenant, isRoot: false };
}

/** The relay's operator: local trust, or the key of the configuration. */
export function rootOperator(tenant = DEFAULT_TENANT): OperatorPrincipal {
  return { kind: "operator", tenant, isRoot: true };
}

export function agentOf(tenant: string, agentId: AgentId): AgentPrincipal {
  return { kind: "agent", tenant, agentId };
}

/** Whether the caller may see what concerns this agent alone. */
export function speaksFor(principal: Principal, agentId: AgentId): boolean {
  return principal.kind === "operator" || principal.agentId === agentId;
}

/** How the journal names the caller. */
export function actorName(principal: Principal): string {
  if (principal.kind === "agent") return principal.agentId;
  return principal.keyId === undefined ? "operator" : `operator:${principal.keyId}`;
}
