import {
  type A2aDialect,
  A2aError,
  type A2aOperation,
  quote,
  RelayError,
  type RelayErrorCode,
} from "@a2a-relay/protocol";
import { asObject } from "../http/http-answer.ts";
import type { A2aHttpAnswer } from "./a2a-http.ts";
import type { A2aParams } from "./agent-binding.ts";
import type { A2aStreamEvent } from "./stream-event.ts";

export function invalidAgentResponse(message: string, cause?: unknown): A2aError {
  return new A2aError("InvalidAgentResponse", message, { cause });
}

/** The answer does not come from an A2A agent. */
export function foreignAnswer(answer: A2aHttpAnswer, how: string): RelayError {
  const { method, url, status, headers, text } = answer;
  const type = headers.get("content-type") ?? "no content type";
  const what = `${method} ${url} answered ${status} with ${type} ${quote(text.slice(0, 100).trim())} ${how}`;
  const code = codeOfStatus(status);
  if (code === undefined) {
    return invalidAgentResponse(`${what}; is this the address of an A2A agent?`);
  }
  return new RelayError(code, `${what}; ${adviceOf(code)}`, { details: { status } });
}

/** Other card addresses would not help: the server refuses or fails. */
export function isRefusedForGood(status: number): boolean {
  return codeOfStatus(status) !== undefined;
}

function codeOfStatus(status: number): RelayErrorCode | undefined {
  if (status === 401) return "unauthenticated";
  if (status === 403) return "permission_denied";
  if (status === 413) return "too_large";
  if (status === 429) return "resource_exhausted";
  return status >= 500 ? "unavailable" : undefined;
}

function adviceOf(code: RelayErrorCode): string {
  switch (code) {
    case "unauthenticated":
      return "give the `apiKey` or the `headers` that the agent asks for";
    case "permission_denied":
      return "the credentials are not enough, or not for this agent";
    case "too_large":
      return "send less, or send a link";
    case "resource_exhausted":
      return "come back later";
    default:
      return "the agent, or a proxy in front of it, is ill; try again later";
  }
}

/** Checks only the members that this client and its callers rely on. */
const FITS: Readonly<Record<A2aOperation, (result: A2aParams) => boolean>> = {
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

/** Converts an answer to 1.0. `url` is for the error. */
export function readResult(
  dialect: A2aDialect,
  operation: A2aOperation,
  result: unknown,
  url: string,
): A2aParams {
  const read = attempt(() => dialect.readResult(operation, result));
  if (read.value !== undefined && FITS[operation](read.value)) return read.value;
  throw strange(`answered ${quote(operation)} with ${quote(result)}`, { url, dialect, cause: read.cause });
}

/** Converts an event to 1.0. `id` is empty when the stream does not number its events. */
export function readEvent(
  dialect: A2aDialect,
  event: unknown,
  { url, id }: { readonly url: string; readonly id: string },
): A2aStreamEvent {
  const read = attempt(() => dialect.readEvent(event));
  if (read.value === undefined || !isEvent({ ...read.value })) {
    throw strange(`sent the event ${quote(event)}`, { url, dialect, cause: read.cause });
  }
  return id === "" ? read.value : { ...read.value, eventId: id };
}

function strange(
  what: string,
  { url, dialect, cause }: { readonly url: string; readonly dialect: A2aDialect; readonly cause: unknown },
): Error {
  return invalidAgentResponse(`${url} ${what}, which is not A2A ${dialect.version}`, cause);
}

/** A dialect throws `invalid_argument`; here the agent is at fault, not the caller. */
function attempt<T>(read: () => T): { readonly value?: T; readonly cause?: unknown } {
  try {
    return { value: read() };
  } catch (cause) {
    return { cause };
  }
}

function isEvent({ task, message, statusUpdate, artifactUpdate }: A2aParams): boolean {
  if (isTask(task) || isMessage(message)) return true;
  const update = asObject(statusUpdate) ?? asObject(artifactUpdate);
  if (typeof update?.["taskId"] !== "string") return false;
  return hasState(update) || isMessage(update["artifact"]);
}

function isTask(value: unknown): boolean {
  const task = asObject(value);
  return task !== undefined && typeof task["id"] === "string" && task["id"] !== "" && hasState(task);
}

function hasState(object: Readonly<Record<string, unknown>>): boolean {
  return typeof asObject(object["status"])?.["state"] === "string";
}

/** Also true for artifacts: both have parts. */
function isMessage(value: unknown): boolean {
  return Array.isArray(asObject(value)?.["parts"]);
}
