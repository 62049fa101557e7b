import {
  A2A_DIALECTS,
  A2A_VERSIONS,
  type A2aDialect,
  type A2aMessage,
  type A2aOperation,
  type A2aTask,
  type A2aVersion,
  type AgentCard,
  fromJsonRpcError,
  fromRestError,
  parseA2aVersion,
  readCard,
  RelayError,
  V03_REST_DIALECT,
} from "@a2a-relay/protocol";
import { REMOTE_BINDINGS, type RemoteAnswer, type RemoteInterface } from "../ports/remote-tasks.ts";

/** How to call an A2A agent: choose an interface of its card, write the request, read the answer. Pure. */

/** The operations that the relay calls. */
export type RemoteOperation = Extract<A2aOperation, "send" | "get" | "cancel">;

export interface RemoteRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A body in the agent's dialect, an error that the agent named, or neither. */
export type RemoteEnvelope =
  | { readonly body: unknown }
  | { readonly error: RelayError }
  | { readonly unreadable: "status" | "body" };

type Members = Readonly<Record<string, unknown>>;

/** Most agents whose cards name no version speak this one. */
const GUESSED_DIALECT: A2aVersion = "0.3";

export function isCard(value: unknown): value is AgentCard {
  if (!isMembers(value)) return false;
  return interfacesIn(value).length > 0 || typeof value["url"] === "string";
}

/**
 * The interfaces that the relay can use, the best first: JSON-RPC before HTTP+JSON, then the newest version, then the
 * order of the card. A card fetched over https leads to https only.
 */
export function interfacesOf(card: AgentCard, cardUrl: string): readonly RemoteInterface[] {
  return interfacesIn(readCard(card))
    .map((written) => readInterface(written, cardUrl))
    .filter((usable) => usable !== undefined)
    .filter(({ url }) => !cardUrl.startsWith("https:") || url.startsWith("https:"))
    .toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** For an agent without a card: the address itself, over JSON-RPC. */
export function guessedInterface(url: string): RemoteInterface {
  return { url, binding: "JSONRPC", dialect: GUESSED_DIALECT, a2aTenant: null };
}

/** `params` are in A2A 1.0. Throws `RelayError` for an id that no URL can hold. */
export function remoteRequest(
  at: RemoteInterface,
  operation: RemoteOperation,
  params: Members,
): RemoteRequest {
  const request =
    at.binding === "JSONRPC" ? rpcRequest(at, operation, params) : restRequest(at, operation, params);
  const version = at.dialect === "1.0" ? { "a2a-version": "1.0" } : {};
  return { ...request, headers: { ...request.headers, ...version } };
}

export function readEnvelope(
  { binding }: RemoteInterface,
  answer: { readonly status: number; readonly text: string },
): RemoteEnvelope {
  return binding === "JSONRPC" ? readRpc(answer) : readRest(answer);
}

/** The result in A2A 1.0. Throws `RelayError` for a body that cannot be read. */
export function readResult(at: RemoteInterface, operation: RemoteOperation, body: unknown): Members {
  return dialectOf(at).readResult(operation, body);
}

/** The answer to a `send`; undefined for what is neither a task nor a message. */
export function readAnswer(result: Members): RemoteAnswer | undefined {
  const task = result["task"] as A2aTask | undefined;
  if (typeof task?.id === "string" && task.id !== "" && typeof task.status?.state === "string")
    return { task };
  const message = result["message"] as A2aMessage | undefined;
  return Array.isArray(message?.parts) ? { message } : undefined;
}

export function parseMembers(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isMembers(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function interfacesIn(card: Members): readonly Members[] {
  const written = card["supportedInterfaces"] ?? card["supported_interfaces"];
  return Array.isArray(written) ? written.filter(isMembers) : [];
}

/** Undefined for a binding, a version or an address that the relay cannot use. */
function readInterface(written: Members, cardUrl: string): RemoteInterface | undefined {
  const { protocolBinding, protocolVersion, tenant } = written;
  const name = typeof protocolBinding === "string" ? protocolBinding.toUpperCase() : "";
  const binding = REMOTE_BINDINGS.find((each) => each === name);
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

function dialectOf({ binding, dialect }: RemoteInterface): A2aDialect {
  return binding === "HTTP+JSON" && dialect !== "1.0" ? V03_REST_DIALECT : A2A_DIALECTS[dialect];
}

function rpcRequest(at: RemoteInterface, operation: RemoteOperation, params: Members): RemoteRequest {
  const dialect = dialectOf(at);
  const asked = at.a2aTenant === null ? params : { ...params, tenant: at.a2aTenant };
  const method = dialect.methods[operation];
  const call = { jsonrpc: "2.0", id: "1", method, params: dialect.writeParams(operation, asked) };
  const headers = { accept: "application/json", "content-type": "application/json" };
  return { method: "POST", url: at.url, headers, body: JSON.stringify(call) };
}

function restRequest(at: RemoteInterface, operation: RemoteOperation, params: Members): RemoteRequest {
  const url = restUrl(at, operation, params);
  const accept = { accept: "application/a2a+json, application/json" };
  if (operation === "get") return { method: "GET", url, headers: accept };
  const body = JSON.stringify(dialectOf(at).writeParams(operation, params));
  return { method: "POST", url, headers: { ...accept, "content-type": "application/json" }, body };
}

/** Cards of 0.3 name the address with or without `/v1`. */
function restUrl(at: RemoteInterface, operation: RemoteOperation, params: Members): string {
  const url = new URL(at.url);
  const base = url.pathname.replace(/\/+$/, "");
  const older = base.endsWith("/v1") ? "" : "/v1";
  url.pathname = base + (at.dialect === "1.0" ? tenantPath(at) : older) + pathOf(operation, params);
  const { historyLength } = params;
  if (operation === "get" && typeof historyLength === "number") {
    url.searchParams.set("historyLength", String(historyLength));
  }
  return url.href;
}

function pathOf(operation: RemoteOperation, { id }: Members): string {
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
  throw new RelayError("invalid_argument", "the agent gave a name that no address can hold");
}

/** Errors of JSON-RPC come with 200 or with any other status. */
function readRpc({ status, text }: { readonly status: number; readonly text: string }): RemoteEnvelope {
  const envelope = parseMembers(text);
  const error = envelope?.["error"];
  if (isMembers(error) && typeof error["code"] === "number") return { error: fromJsonRpcError(error) };
  if (!isSuccess(status)) return { unreadable: "status" };
  const hasResult = envelope !== undefined && Object.hasOwn(envelope, "result");
  return hasResult ? { body: envelope["result"] } : { unreadable: "body" };
}

/** Errors of 1.0 are in `error`, those of 0.3 are the body. */
function readRest({ status, text }: { readonly status: number; readonly text: string }): RemoteEnvelope {
  const body = parseMembers(text);
  if (isSuccess(status)) return body === undefined ? { unreadable: "body" } : { body };
  const error = isMembers(body?.["error"]) ? body["error"] : body;
  if (typeof error?.["message"] !== "string") return { unreadable: "status" };
  return { error: fromRestError(status, body) };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
