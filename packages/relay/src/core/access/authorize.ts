import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Principal } from "./principal.ts";

/** Whom an act concerns: the agents that may have a say in it. */
export interface Target {
  /** The agent acted as, or whose mailbox or registration it is. */
  readonly agentId?: AgentId;
  /** Those who take part in the message or task. */
  readonly parties?: readonly AgentId[];
}

type Rule = (caller: AgentId, target: Target) => boolean;

const anyone: Rule = () => true;
const operatorOnly: Rule = () => false;
const itself: Rule = (caller, target) => target.agentId === caller;
const party: Rule = (caller, target) => target.parties?.includes(caller) ?? false;

/** What an agent may do; an operator may do all of it in its tenant. A verb without a row does not compile. */
const RULES = {
  "agents.read": anyone,
  "agents.write": itself,
  "events.read": operatorOnly,
  "journal.verify": operatorOnly,
  "mailbox.read": itself,
  "mailbox.settle": itself,
  "messages.read": party,
  "messages.send": itself,
  "metrics.read": operatorOnly,
  "queue.read": operatorOnly,
  "repair.write": operatorOnly,
  "tasks.cancel": itself,
  "tasks.list": itself,
  "tasks.read": party,
  "tasks.work": itself,
  "threads.read": operatorOnly,
} as const satisfies Record<string, Rule>;

export type Verb = keyof typeof RULES;
export const VERBS = Object.keys(RULES) as readonly Verb[];

/** Reading what is not yours looks the same as reading what is not there. */
const HIDDEN: ReadonlySet<Verb> = new Set<Verb>(["messages.read", "tasks.read"]);

/** The one place that decides who may do what. Every service calls it before it reads or changes anything. */
export function authorize(principal: Principal, verb: Verb, target: Target = {}): void {
  if (principal.kind === "operator" || isAllowed(principal, verb, target)) return;
  if (HIDDEN.has(verb)) throw new RelayError("not_found", "there is nothing here under that id");
  const whom = target.agentId === undefined ? "" : ` for ${target.agentId}`;
  throw new RelayError("permission_denied", `${principal.agentId} may not ${verb}${whom}`);
}

/** The same question where the answer only leaves something out. */
export function isAllowed(principal: Principal, verb: Verb, target: Target): boolean {
  return principal.kind === "operator" || RULES[verb](principal.agentId, target);
}
