import { A2aError, quote, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import type { A2aHttpAnswer } from "./a2a-http.ts";

/** The agent said something that is no A2A. */
export function invalidAgentResponse(message: string, cause?: unknown): A2aError {
  return new A2aError("InvalidAgentResponse", message, { cause });
}

/** Somebody answered, and not as an agent does. */
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

/** Asking elsewhere would not help: somebody is there and refuses, or is ill. */
export function isRefusedForGood(status: number): boolean {
  return codeOfStatus(status) !== undefined;
}

export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Readonly<Record<string, unknown>>;
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
