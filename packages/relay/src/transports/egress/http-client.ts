/** A request of the relay to a server outside. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** From resolving the host name to the last byte of the answer. */
  readonly timeoutMs: number;
  /** The relay reads this much of the answer and then closes the connection. */
  readonly answerBytesMax: number;
  readonly signal?: AbortSignal | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  /** By lower-case name; the first of several. */
  readonly headers: Readonly<Record<string, string>>;
  /** The beginning of the body as text. Bytes that are no UTF-8 are replaced. */
  readonly text: string;
}

/** Why there was no answer. `message` is for people and reveals nothing about internal addresses. */
export class OutboundFailure extends Error {
  override readonly name: string = "OutboundFailure";
  readonly code: OutboundFailureCode;
  /** The request had a connection and was begun: the other side may have all of it. */
  readonly mayHaveArrived: boolean;

  constructor(code: OutboundFailureCode, message: string, options: OutboundFailureOptions = {}) {
    super(message, options);
    this.code = code;
    this.mayHaveArrived = options.mayHaveArrived ?? false;
  }
}

export interface OutboundFailureOptions extends ErrorOptions {
  readonly mayHaveArrived?: boolean;
}

export const OUTBOUND_FAILURE_CODES = [
  "blocked",
  "unreachable",
  "tls",
  "timeout",
  "protocol",
  "aborted",
] as const;
export type OutboundFailureCode = (typeof OUTBOUND_FAILURE_CODES)[number];

/**
 * Every outbound request of the relay goes through it. It refuses addresses that the
 * operator did not allow (`blocked`), connects to the very address it has checked, and follows no redirect.
 */
export interface HttpClient {
  /** Throws only `OutboundFailure`; any status is an answer. */
  request(request: OutboundRequest): Promise<OutboundAnswer>;
}
