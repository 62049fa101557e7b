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

/** One way to reach an agent. */
export interface AgentInterface {
  readonly url: string;
  readonly binding: A2aBindingName;
  readonly version: A2aVersion;
  /** To be repeated in each request. */
  readonly tenant: string | undefined;
  /** The card does not tell the version: it is one from before cards told it. */
  readonly isGuessed: boolean;
}

/** What a card told before it told versions: methods as of 0.2, which most agents have that are still there. */
const GUESSED_VERSION: A2aVersion = "0.2";

/** Whether something that was found at the address of a card is one. */
export function isAgentCard(value: Readonly<Record<string, unknown>>): boolean {
  return interfacesOf(value).length > 0 || typeof value["url"] === "string";
}

/**
 * The interface to use: JSON-RPC before HTTP+JSON, then the newest version, then the order of the card.
 * `cardUrl`: where the card was found, for addresses that are relative to it.
 */
export function chooseInterface(
  card: AgentCard,
  wishes: Pick<FilledA2AClientOptions, "binding" | "dialect" | "headers">,
  cardUrl?: string,
): AgentInterface {
  const usable = interfacesOf(readCard(card))
    .map((written) => readInterface(written, card, cardUrl))
    .filter((known) => known !== undefined)
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

/** Undefined for a binding or a version that this client does not speak. */
function readInterface(
  written: Written,
  card: AgentCard,
  cardUrl: string | undefined,
): AgentInterface | undefined {
  const { protocolBinding: name } = written;
  const binding = A2A_BINDINGS.find((known) => typeof name === "string" && known === name.toUpperCase());
  // Where a card of an older version names none, its dialect has none to hand on.
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

/** A card that came over a safe line must not have credentials sent over an open one. */
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
