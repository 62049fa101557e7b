import type { AgentCard } from "../../model/agent.ts";
import { A2A_VERSIONS, type A2aDialect, type A2aVersion } from "../a2a-dialect.ts";
import { readCard } from "../card-dialect.ts";
import { A2A_DIALECTS, parseA2aVersion } from "../dialects.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../json-members.ts";
import { V03_REST_DIALECT } from "../v03-rest-dialect.ts";

/** The bindings that our callers use, under their names in cards. */
export const A2A_BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;
export type A2aBindingName = (typeof A2A_BINDINGS)[number];

/** One way to reach an agent. */
export interface AgentInterface {
  readonly url: string;
  readonly binding: A2aBindingName;
  readonly dialect: A2aVersion;
  /** The tenant field of A2A, which every request repeats; null where the card names none. */
  readonly a2aTenant: string | null;
}

/** An interface as an agent offers it. */
export interface OfferedInterface extends AgentInterface {
  /** Nothing names the version: the dialect to use if the agent does not know a method of `dialect`. */
  readonly otherDialect?: A2aVersion;
}

/** The specification: "an empty version means 0.3". */
const DEFAULT_DIALECT: A2aVersion = "0.3";

/** Where agents serve their card, below their address; the newest convention first. */
export const CARD_PATHS = [".well-known/agent-card.json", ".well-known/agent.json"] as const;

/** Where the card of an agent may be: at the address if that is a JSON file, or below it. */
export function cardAddresses(url: string): readonly string[] {
  const folder = new URL(url);
  if (folder.pathname.endsWith(".json")) return [url];
  if (!folder.pathname.endsWith("/")) folder.pathname += "/";
  folder.search = "";
  return CARD_PATHS.map((path) => new URL(path, folder).href);
}

/** The card as the agent wrote it; undefined for what is no card. */
export function parseCard(text: string): AgentCard | undefined {
  const card = parseJsonObject(text);
  return card !== undefined && interfacesIn(readCard(card)).length > 0 ? card : undefined;
}

/**
 * The interfaces of a card, as the agent wrote it, that our callers can use, the best first: JSON-RPC before HTTP+JSON,
 * then the newest version, then the order of the card. Addresses may be relative to `cardUrl`.
 */
export function interfacesOf(card: AgentCard, cardUrl?: string): readonly OfferedInterface[] {
  return interfacesIn(readCard(card))
    .map((written) => readInterface(written, card, cardUrl))
    .filter((usable) => usable !== undefined)
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** For an agent without a card: the address itself, over JSON-RPC. */
export function interfaceWithoutCard(url: string): OfferedInterface {
  return { url, binding: "JSONRPC", dialect: DEFAULT_DIALECT, otherDialect: "1.0", a2aTenant: null };
}

/** A card that came over https names an interface over http. */
export function isDowngrade({ url }: AgentInterface, cardUrl: string | undefined): boolean {
  return cardUrl?.startsWith("https:") === true && !url.startsWith("https:");
}

/** A web address without a user and a fragment; undefined for any other. */
export function callableUrl(text: unknown, base?: string): string | undefined {
  const url = typeof text === "string" && URL.canParse(text, base) ? new URL(text, base) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  url.hash = "";
  return url.href;
}

export function dialectOf({ binding, dialect }: AgentInterface): A2aDialect {
  return binding === "HTTP+JSON" && dialect !== "1.0" ? V03_REST_DIALECT : A2A_DIALECTS[dialect];
}

function interfacesIn(card: AgentCard): readonly JsonObject[] {
  const written = card["supportedInterfaces"] ?? card["supported_interfaces"];
  return Array.isArray(written) ? (written as readonly unknown[]).filter(isJsonObject) : [];
}

/** Undefined for a binding, a version or an address that our callers cannot use. */
function readInterface(
  written: JsonObject,
  card: AgentCard,
  cardUrl: string | undefined,
): OfferedInterface | undefined {
  const { protocolBinding: name, tenant } = written;
  const binding = A2A_BINDINGS.find((each) => typeof name === "string" && each === name.toUpperCase());
  const url = callableUrl(written["url"], cardUrl);
  const version = versionOf(written, card);
  if (binding === undefined || url === undefined || version === undefined) return undefined;
  return { url, binding, ...version, a2aTenant: typeof tenant === "string" && tenant !== "" ? tenant : null };
}

/** Cards have a list of interfaces since 1.0, and agents of 0.1 wrote no version at all. */
function versionOf(
  { protocolVersion: said }: JsonObject,
  card: AgentCard,
): Pick<OfferedInterface, "dialect" | "otherDialect"> | undefined {
  const isOlder = interfacesIn(card).length === 0;
  const isUnsaid = isOlder && (card["protocolVersion"] ?? card["protocol_version"]) === undefined;
  const version = parseA2aVersion(typeof said === "string" && !isUnsaid ? said : undefined);
  if (version === "unknown") return undefined;
  if (version !== undefined) return { dialect: version };
  return { dialect: DEFAULT_DIALECT, otherDialect: isOlder ? "0.1" : "1.0" };
}

function rankOf({ binding, dialect }: AgentInterface): number {
  return A2A_BINDINGS.indexOf(binding) * A2A_VERSIONS.length + A2A_VERSIONS.indexOf(dialect);
}
