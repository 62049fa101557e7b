import { RELAY_EXTENSIONS } from "@a2a-relay/protocol";

/** Says which of the extensions that the caller named are in force; the others are the agent's business. */
export function extensionHeaders(named: readonly string[]): {
  readonly headers?: Readonly<Record<string, string>>;
} {
  const active = named.filter((uri) => (RELAY_EXTENSIONS as readonly string[]).includes(uri));
  return active.length === 0 ? {} : { headers: { "a2a-extensions": active.join(", ") } };
}
