import { type AgentId, RelayError, type Verb } from "@a2a-relay/protocol";
import type { Principal } from "./principal.ts";
import { isRemote } from "../rules/remote-address.ts";

/** What an act is about: the agents and the tenant that the rules compare with the caller. */
export interface Target {
  /** The agent acted as, or whose mailbox or registration it is. */
  readonly agentId?: AgentId;
  /** The agents that take part in the message or task. */
  readonly parties?: readonly AgentId[];
  /** When the message or task was created: an earlier agent with the caller's id may own it. */
  readonly atMs?: number | undefined;
  /** The tenant acted in, where it may differ from the caller's. */
  readonly tenant?: string;
}

type Rule = (caller: AgentId, target: Target) => boolean;

const anyone: Rule = () => true;
const operatorOnly: Rule = () => false;
const itself: Rule = (caller, target) => target.agentId === caller;
const party: Rule = (caller, target) => target.parties?.includes(caller) ?? false;

/** What an agent may do. An operator may do all of it in its tenant. A verb without a row does not compile. */
const RULES = {
  "agents.read": anyone,
  "agents.write": itself,
  // An agent delegates only what it holds; CapabilityService checks that.
  "capabilities.grant": anyone,
  "capabilities.read": anyone,
  "capabilities.revoke": anyone,
  "events.read": operatorOnly,
  "journal.verify": operatorOnly,
  "keys.read": operatorOnly,
  "keys.write": operatorOnly,
  "mail.compact": anyone,
  "mailbox.read": itself,
  "mailbox.settle": itself,
  "messages.read": party,
  "messages.send": itself,
  "metrics.read": operatorOnly,
  "push.read": itself,
  "push.write": itself,
  "queue.read": itself,
  // An agent needs a capability; CapabilityGate checks that.
  "repair.write": anyone,
  "task-queue.read": itself,
  "tasks.cancel": itself,
  "tasks.list": itself,
  "tasks.read": party,
  "tasks.work": itself,
  "tenants.read": operatorOnly,
  "tenants.write": operatorOnly,
  "threads.read": operatorOnly,
} as const satisfies Record<Verb, Rule>;

/** Their refusals are the same as for a missing message or task. */
const HIDDEN: ReadonlySet<Verb> = new Set<Verb>(["messages.read", "tasks.read"]);

/** The only function that decides who may do what. Every service calls it, through the guard, before it acts. */
export function isAllowed(principal: Principal, verb: Verb, target: Target = {}): boolean {
  if (principal.verbs !== undefined && !principal.verbs.has(verb)) return false;
  if (principal.kind === "agent") {
    return isOwnTenant(principal, target) && RULES[verb](principal.agentId, target);
  }
  return principal.isRoot || isOwnTenant(principal, target);
}

function isOwnTenant(principal: Principal, { tenant }: Target): boolean {
  return tenant === undefined || tenant === principal.tenant;
}

/** Tells the caller nothing new. `unseen` is the text for a missing message or task. */
export function denialOf(
  principal: Principal,
  verb: Verb,
  target: Target,
  unseen = "there is nothing here under that id",
): RelayError {
  if (principal.verbs !== undefined && !principal.verbs.has(verb)) {
    const known = [...principal.verbs].join(", ");
    return new RelayError(
      "permission_denied",
      `this key may not be used for ${verb}; it is limited to ${known}`,
    );
  }
  if (HIDDEN.has(verb)) return new RelayError("not_found", unseen);
  return new RelayError("permission_denied", denialSentence(principal, verb, target));
}

function denialSentence(principal: Principal, verb: Verb, target: Target): string {
  const who = principal.kind === "agent" ? principal.agentId : `an operator of ${principal.tenant}`;
  if (!isOwnTenant(principal, target)) {
    return `${who} may not use ${verb} in another tenant; the relay's operator may`;
  }
  if (RULES[verb] === operatorOnly) return `${who} may not use ${verb}; it takes the key of an operator`;
  const whom = target.agentId === undefined ? "" : ` for ${target.agentId}`;
  return `${who} may not use ${verb}${whom}; an agent acts for itself only`;
}

/**
 * Whether the agent may appear in a list. Only operators see remote agents there: the URL may be known to few.
 * `viewer` is undefined for a caller without a key.
 */
export function isListedFor(viewer: Principal | undefined, agentId: string): boolean {
  return viewer?.kind === "operator" || !isRemote(agentId);
}
