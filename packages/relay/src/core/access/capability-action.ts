import { quote, RelayError } from "@a2a-relay/protocol";

const PAIRED = ["send", "recv", "respond"] as const;
export type PairedVerb = (typeof PAIRED)[number];

const PLAIN = ["a2a.repair.requeue", "a2a.repair.force_error", "a2a.compact"] as const;
export type PlainAction = (typeof PLAIN)[number];

/** What may be granted: something with one other agent, or something with whatever the caller takes part in. */
export type WrittenAction =
  | { readonly verb: PairedVerb; readonly peer: string }
  | { readonly plain: PlainAction };

/** Exactly one of the known actions; there are no wildcards, so that a grant never means more than it says. */
export function parseAction(text: string): WrittenAction {
  const plain = PLAIN.find((each) => each === text);
  if (plain !== undefined) return { plain };
  for (const verb of PAIRED) {
    const prefix = `a2a.${verb}.`;
    const peer = text.startsWith(prefix) ? text.slice(prefix.length) : "";
    if (peer !== "" && !peer.includes("*")) return { verb, peer };
  }
  throw new RelayError(
    "invalid_argument",
    `action: ${quote(text)} is none of ${[...PAIRED.map((verb) => `a2a.${verb}.<agent>`), ...PLAIN].join(", ")}; there are no wildcards`,
  );
}

/** With an agent's name it is for people, with its public key it is what is signed and compared. */
export function pairedAction(verb: PairedVerb, peer: string): string {
  return `a2a.${verb}.${peer}`;
}
