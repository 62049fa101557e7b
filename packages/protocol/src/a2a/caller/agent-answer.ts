import type { RelayError } from "../../base/relay-error.ts";
import { quote } from "../../base/text.ts";
import type { A2aDialect, A2aOperation } from "../a2a-dialect.ts";
import { A2aError } from "../a2a-error.ts";
import { fromJsonRpcError, fromRestError } from "../a2a-error-body.ts";
import type { A2aStreamResponse } from "../a2a-json.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../json-members.ts";
import { type AgentInterface, dialectOf } from "./agent-interface.ts";
import type { A2aCall } from "./agent-request.ts";

/** What an agent answered, in 1.0, or why there is no such answer. */
export type A2aAnswer =
  | { readonly result: JsonObject }
  /** The agent named this error. */
  | { readonly error: RelayError }
  /** Not the binding of A2A: the status is that of an error, or the body is no envelope. */
  | { readonly unreadable: "status" | "body" }
  | InvalidAnswer;

export type A2aEventAnswer =
  | { readonly event: A2aStreamResponse }
  | { readonly error: RelayError }
  | InvalidAnswer;

/** The agent answered in the binding, but with this, which A2A does not allow. The text follows the agent's name. */
export interface InvalidAnswer {
  readonly invalid: string;
  readonly cause?: unknown;
}

interface HttpAnswerText {
  readonly status: number;
  readonly text: string;
}

type Body = Exclude<A2aAnswer, { readonly result: JsonObject }> | { readonly body: unknown };

export function readA2aAnswer(
  at: AgentInterface,
  { operation, id }: Pick<A2aCall, "operation" | "id">,
  answer: HttpAnswerText,
): A2aAnswer {
  const read = at.binding === "JSONRPC" ? readRpc(answer, id) : readRest(answer);
  if (!("body" in read)) return read;
  const dialect = dialectOf(at);
  const { value, cause } = attempt(() => dialect.readResult(operation, read.body));
  if (value !== undefined && FITS[operation](value)) return { result: value };
  return notOfDialect(`answered ${quote(operation)} with ${quote(read.body)}`, dialect, cause);
}

/** Reads a server-sent event. */
export function readA2aEvent(
  at: AgentInterface,
  sent: { readonly event: string; readonly data: string },
): A2aEventAnswer {
  const read = at.binding === "JSONRPC" ? readRpcEvent(sent.data) : readRestEvent(sent);
  if (!("body" in read)) return read;
  const dialect = dialectOf(at);
  const { value, cause } = attempt(() => dialect.readEvent(read.body));
  if (value !== undefined && isEvent({ ...value })) return { event: value };
  return notOfDialect(`sent the event ${quote(read.body)}`, dialect, cause);
}

/** The agent did nothing: the call may be repeated in another dialect. */
export function isUnknownMethod(error: unknown): boolean {
  return error instanceof A2aError && ["MethodNotFound", "VersionNotSupported"].includes(error.a2a);
}

/** JSON-RPC errors come with 200 or any other status. */
function readRpc({ status, text }: HttpAnswerText, id: string): Body {
  const envelope = parseJsonObject(text);
  const error = envelope?.["error"];
  if (isJsonObject(error) && typeof error["code"] === "number") return { error: fromJsonRpcError(error) };
  if (!isSuccess(status)) return { unreadable: "status" };
  if (envelope === undefined || !Object.hasOwn(envelope, "result")) return { unreadable: "body" };
  // Detects answers that a cache or proxy mixed up. Not all agents return the id, or its type.
  const answered = envelope["id"];
  if (answered == null || answered === id || answered === Number(id)) return { body: envelope["result"] };
  return { invalid: `answered another request: id ${quote(answered)}, asked with ${quote(id)}` };
}

function readRest({ status, text }: HttpAnswerText): Body {
  const body = parseJsonObject(text);
  if (!isSuccess(status)) {
    return isRestError(body) ? { error: fromRestError(status, body) } : { unreadable: "status" };
  }
  if (status === 204 || text.trim() === "") return { body: {} };
  return body === undefined ? { unreadable: "body" } : { body };
}

/** 1.0 has `{"error":{…}}`, 0.3 the error itself. */
function isRestError(body: JsonObject | undefined): body is JsonObject {
  const error = isJsonObject(body?.["error"]) ? body["error"] : body;
  return error?.["code"] !== undefined && typeof error["message"] === "string";
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

type EventBody = Exclude<Body, { readonly unreadable: unknown }>;

function readRpcEvent(data: string): EventBody {
  const envelope = parseJsonObject(data);
  const error = envelope?.["error"];
  if (isJsonObject(error)) return { error: fromJsonRpcError(error) };
  if (envelope !== undefined && Object.hasOwn(envelope, "result")) return { body: envelope["result"] };
  return { invalid: `sent the event ${quote(data)}, which is no answer of JSON-RPC` };
}

function readRestEvent({ event, data }: { readonly event: string; readonly data: string }): EventBody {
  const body = parseJsonObject(data);
  if (body === undefined) return { invalid: `sent the event ${quote(data)}, which is no JSON object` };
  const { error } = body;
  if ((event !== "error" && !isJsonObject(error)) || !isRestError(body)) return { body };
  const status = Number((isJsonObject(error) ? error : body)["code"]);
  return { error: fromRestError(status >= 400 && status <= 599 ? status : 500, body) };
}

/** A dialect throws where the agent is at fault, not the caller. */
function attempt<T>(read: () => T): { readonly value?: T; readonly cause?: unknown } {
  try {
    return { value: read() };
  } catch (cause) {
    return { cause };
  }
}

function notOfDialect(what: string, { version }: A2aDialect, cause: unknown): InvalidAnswer {
  return { invalid: `${what}, which is not A2A ${version}`, cause };
}

/** Checks only the members that callers rely on. */
const FITS: Readonly<Record<A2aOperation, (result: JsonObject) => boolean>> = {
  send: ({ task, message }) => isTask(task) || isMessage(message),
  stream: isEvent,
  subscribe: isEvent,
  get: isTask,
  cancel: isTask,
  list: ({ tasks }) => Array.isArray(tasks) && tasks.every(isTask),
  "push-create": ({ url }) => typeof url === "string",
  "push-get": ({ url }) => typeof url === "string",
  "push-list": ({ configs }) => Array.isArray(configs),
  "push-delete": () => true,
  "extended-card": ({ name }) => typeof name === "string",
};

function isEvent({ task, message, statusUpdate, artifactUpdate }: JsonObject): boolean {
  if (isTask(task) || isMessage(message)) return true;
  const update = isJsonObject(statusUpdate) ? statusUpdate : artifactUpdate;
  if (!isJsonObject(update) || typeof update["taskId"] !== "string") return false;
  return hasState(update) || isMessage(update["artifact"]);
}

function isTask(value: unknown): boolean {
  return isJsonObject(value) && typeof value["id"] === "string" && value["id"] !== "" && hasState(value);
}

function hasState({ status }: JsonObject): boolean {
  return isJsonObject(status) && typeof status["state"] === "string";
}

/** Also true for artifacts: both have parts. */
function isMessage(value: unknown): boolean {
  return isJsonObject(value) && Array.isArray(value["parts"]);
}
