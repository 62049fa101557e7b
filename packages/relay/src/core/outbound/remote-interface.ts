import {
  A2A_VERSIONS,
  type A2aOperation,
  type A2aVersion,
  type AgentCard,
  parseA2aVersion,
  readCard,
} from "@a2a-relay/protocol";
import { REMOTE_BINDINGS, type RemoteAnswer, type RemoteInterface } from "../ports/remote-tasks.ts";
import { RemoteFailure } from "./remote-calls.ts";

/** What most agents speak whose cards are from before cards told a version. */
const GUESSED_DIALECT: A2aVersion = "0.3";

type Members = Readonly<Record<string, unknown>>;

/** Whether what was found at the address of a card is one. */
export function isCard(value: unknown): value is AgentCard {
  if (!isMembers(value)) return false;
  return interfacesIn(value).length > 0 || typeof value["url"] === "string";
}

/**
 * The ways that the relay can go, the best first: JSON-RPC before HTTP+JSON, then the newest version, then the order of
 * the card. A card that came over a safe line sends nothing over an open one.
 */
export function interfacesOf(card: AgentCard, cardUrl: string): readonly RemoteInterface[] {
  return interfacesIn(readCard(card))
    .map((written) => readInterface(written, cardUrl))
    .filter((known) => known !== undefined)
    .filter(({ url }) => !cardUrl.startsWith("https:") || url.startsWith("https:"))
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** Where there is no card: the address itself, as the oldest endpoints that are still there have it. */
export function guessedInterface(url: string): RemoteInterface {
  return { url, binding: "JSONRPC", dialect: GUESSED_DIALECT, a2aTenant: null };
}

function interfacesIn(card: Members): readonly Members[] {
  const written = card["supportedInterfaces"] ?? card["supported_interfaces"];
  return Array.isArray(written) ? written.filter(isMembers) : [];
}

/** Undefined for a binding, a version or an address that the relay cannot use. */
function readInterface(written: Members, cardUrl: string): RemoteInterface | undefined {
  const { protocolBinding, protocolVersion, tenant } = written;
  const name = typeof protocolBinding === "string" ? protocolBinding.toUpperCase() : "";
  const binding = REMOTE_BINDINGS.find((known) => known === name);
  const version = parseA2aVersion(typeof protocolVersion === "string" ? protocolVersion : GUESSED_DIALECT);
  const url = typeof written["url"] === "string" ? URL.parse(written["url"], cardUrl) : null;
  if (binding === undefined || version === undefined || version === "unknown" || url === null)
    return undefined;
  const a2aTenant = typeof tenant === "string" && tenant !== "" ? tenant : null;
  return { url: url.href, binding, dialect: version, a2aTenant };
}

function rankOf({ binding, dialect }: RemoteInterface): number {
  return REMOTE_BINDINGS.indexOf(binding) * A2A_VERSIONS.length + A2A_VERSIONS.indexOf(dialect);
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What the relay asks of agents elsewhere. */
export type RemoteOperation = Extract<A2aOperation, "send" | "get" | "cancel">;

export interface RestRoute {
  readonly method: "GET" | "POST";
  readonly url: string;
}

type Params = Readonly<Record<string, unknown>>;

/** Where an operation is with HTTP+JSON. Cards of 0.3 name the address with its `/v1` or without. */
export function restRoute(at: RemoteInterface, operation: RemoteOperation, params: Params): RestRoute {
  const url = new URL(at.url);
  const base = url.pathname.replace(/\/+$/, "");
  const older = base.endsWith("/v1") ? "" : "/v1";
  url.pathname = base + (at.dialect === "1.0" ? tenantPath(at) : older) + pathOf(operation, params);
  if (operation !== "get") return { method: "POST", url: url.href };
  const { historyLength } = params;
  if (typeof historyLength === "number") url.searchParams.set("historyLength", String(historyLength));
  return { method: "GET", url: url.href };
}

function pathOf(operation: RemoteOperation, { id }: Params): string {
  if (operation === "send") return "/message:send";
  return operation === "get" ? `/tasks/${encodeId(id)}` : `/tasks/${encodeId(id)}:cancel`;
}

function tenantPath({ a2aTenant }: RemoteInterface): string {
  return a2aTenant === null ? "" : `/${encodeId(a2aTenant)}`;
}

/** The URL parser resolves dots even when they are encoded, and would call another route. */
function encodeId(id: unknown): string {
  if (typeof id === "string" && id.isWellFormed() && !["", ".", ".."].includes(id))
    return encodeURIComponent(id);
  throw new RemoteFailure("refused", "the agent gave a name that no address can hold");
}

/** What an agent elsewhere answered to a message, and over which of its interfaces. */
export interface RemoteReply {
  readonly at: RemoteInterface;
  readonly answer: RemoteAnswer;
}
