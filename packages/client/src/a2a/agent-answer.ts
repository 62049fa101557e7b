import { A2aError, type InvalidAnswer, quote, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import type { A2aHttpAnswer } from "./a2a-http.ts";

export function invalidAgentResponse(message: string, cause?: unknown): A2aError {
  return new A2aError("InvalidAgentResponse", message, { cause });
}

/** Throws for the error of an agent, and for an answer that A2A does not allow. */
export function valueOf<Value extends object>(
  read: Value | { readonly error: RelayError } | InvalidAnswer,
  url: string,
): Value {
  if ("error" in read) throw read.error;
  if ("invalid" in read) throw invalidAgentResponse(`${url} ${read.invalid}`, read.cause);
  return read;
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
