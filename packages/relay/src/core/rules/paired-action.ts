/** What an agent may be allowed to do with one other agent. */
export const PAIRED_VERBS = ["send", "recv", "respond"] as const;
export type PairedVerb = (typeof PAIRED_VERBS)[number];

/**
 * The action that a capability grants towards `peer`. Grants and errors name the agent; the relay signs and compares
 * the form with the agent's public key.
 */
export function pairedAction(verb: PairedVerb, peer: string): string {
  return `a2a.${verb}.${peer}`;
}
