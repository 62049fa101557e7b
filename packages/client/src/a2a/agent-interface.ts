import {
  A2A_VERSIONS,
  type A2aVersion,
  type AgentCard,
  parseA2aVersion,
  quote,
  readCard,
  RelayError,
} from "@a2a-relay/protocol";
import {
  A2A_BINDINGS,
  type A2aBindingName,
  type FilledA2AClientOptions,
  parseAgentUrl,
} from "./a2a-client-options.ts";

/** An endpoint of an agent. */
export interface AgentInterface {
  readonly url: string;
  readonly binding: A2aBindingName;
  readonly version: A2aVersion;
  /** Sent with each request. */
  readonly tenant: string | undefined;
  /** The card does not name the version, as old cards did not. */
  readonly isGuessed: boolean;
}

/** Most agents whose card names no version have the methods of 0.2. */
const GUESSED_VERSION: A2aVersion = "0.2";

export function isAgentCard(value: Readonly<Record<string, unknown>>): boolean {
  return interfacesOf(value).length > 0 || typeof value["url"] === "string";
}

/**
 * Prefers JSON-RPC to HTTP+JSON, then the newest version, then the order of the card. Relative addresses are resolved
 * against `cardUrl`.
 */
export function chooseInterface(
  card: AgentCard,
  wishes: Pick<FilledA2AClientOptions, "binding" | "dialect" | "headers">,
  cardUrl?: string,
): AgentInterface {
  const usable = interfacesOf(readCard(card))
    .map((written) => readInterface(written, card, cardUrl))
    .filter((each) => each !== undefined)
    .filter(({ binding }) => wishes.binding === undefined || binding === wishes.binding)
    .filter(
      ({ version, isGuessed }) => wishes.dialect === undefined || isGuessed || version === wishes.dialect,
    )
    .toSorted((one, other) => rankOf(one) - rankOf(other));
  const [best] = usable;
  if (best === undefined) throw noInterface(card, wishes);
  assertSafe(best, wishes, cardUrl);
  return wishes.dialect === undefined ? best : { ...best, version: wishes.dialect, isGuessed: false };
}

type Written = Readonly<Record<string, unknown>>;

function interfacesOf(card: AgentCard): readonly Written[] {
  const written = card["supportedInterfaces"];
  if (!Array.isArray(written)) return [];
  return written.filter((one): one is Written => typeof one === "object" && one !== null);
}

/** Undefined for a binding or version that this client does not support. */
function readInterface(
  written: Written,
  card: AgentCard,
  cardUrl: string | undefined,
): AgentInterface | undefined {
  const { protocolBinding: name } = written;
  const binding = A2A_BINDINGS.find((each) => typeof name === "string" && each === name.toUpperCase());
  // A card without interfaces and version is an old one.
  const isGuessed = interfacesOf(card).length === 0 && card["protocolVersion"] === undefined;
  const version = isGuessed
    ? GUESSED_VERSION
    : versionOf(written["protocolVersion"] ?? card["protocolVersion"]);
  if (binding === undefined || version === undefined) return undefined;
  const tenant = written["tenant"];
  return {
    url: parseAgentUrl("the address in the agent's card", written["url"], cardUrl),
    binding,
    version,
    tenant: typeof tenant === "string" && tenant !== "" ? tenant : undefined,
    isGuessed,
  };
}

function versionOf(written: unknown): A2aVersion | undefined {
  const version = parseA2aVersion(typeof written === "string" ? written : undefined);
  return version === "unknown" ? undefined : version;
}

function rankOf({ binding, version }: AgentInterface): number {
  return A2A_BINDINGS.indexOf(binding) * A2A_VERSIONS.length + A2A_VERSIONS.indexOf(version);
}

function noInterface(
  card: AgentCard,
  { binding, dialect }: Pick<FilledA2AClientOptions, "binding" | "dialect">,
): RelayError {
  const offered = interfacesOf(readCard(card)).map(
    ({ protocolBinding, protocolVersion }) => `${String(protocolBinding)} ${String(protocolVersion)}`,
  );
  const wanted = `${binding ?? "JSONRPC or HTTP+JSON"} of A2A ${dialect ?? A2A_VERSIONS.join(", ")}`;
  const what = `the card of ${quote(card["name"])} offers ${offered.join(", ") || "no interface"}`;
  return new RelayError("invalid_argument", `${what}; this client wants ${wanted}`);
}

/** A card that came over HTTPS must not send credentials over HTTP. */
function assertSafe(
  { url }: AgentInterface,
  { headers }: Pick<FilledA2AClientOptions, "headers">,
  cardUrl: string | undefined,
): void {
  const isDowngrade = cardUrl?.startsWith("https:") === true && url.startsWith("http:");
  if (!isDowngrade || Object.keys(headers).length === 0) return;
  const advice = "give that card as `card` if this is meant";
  const what = `the card at ${cardUrl} sends your credentials to ${url}, over an open line`;
  throw new RelayError("permission_denied", `${what}; ${advice}`);
}
