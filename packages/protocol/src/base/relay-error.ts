import { type Static, Type } from "typebox";
import { type Frozen, membersSchema } from "./schema.ts";

/** Every code that can cross a boundary. `docs/reference/errors.md` lists the same ones; a test compares them. */
export const RELAY_ERROR_CODES = [
  "invalid_argument",
  "unauthenticated",
  "permission_denied",
  "not_found",
  "unknown_agent",
  "ambiguous_agent",
  "conflict",
  "lease_required",
  "lease_lost",
  "task_canceled",
  "task_finished",
  "wrong_state",
  "too_large",
  "unsupported_media_type",
  "mailbox_full",
  "resource_exhausted",
  "storage_full",
  "unavailable",
  "internal",
] as const;

export type RelayErrorCode = (typeof RELAY_ERROR_CODES)[number];

export type RelayErrorDetails = Readonly<Record<string, unknown>>;

export interface RelayErrorOptions extends ErrorOptions {
  /** What a program needs beyond the sentence: the candidates, the state, the lease. Crosses the wire. */
  readonly details?: RelayErrorDetails | undefined;
}

/** The one error type that crosses a boundary. Wires map `code`; people read `message`. */
export class RelayError extends Error {
  override readonly name: string = "RelayError";
  readonly code: RelayErrorCode;
  readonly details: RelayErrorDetails | undefined;

  constructor(code: RelayErrorCode, message: string, options: RelayErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.details = options.details;
  }

  /** Whatever we did not raise ourselves is `internal`; its text goes to the log, never to the peer. */
  static from(reason: unknown): RelayError {
    if (reason instanceof RelayError) return reason;
    return new RelayError("internal", "internal error; the relay's log says more", {
      cause: reason,
    });
  }
}

export function isRelayErrorCode(value: unknown): value is RelayErrorCode {
  return (RELAY_ERROR_CODES as readonly unknown[]).includes(value);
}

/** The members that an error has on every native wire. */
export const errorMembers = {
  code: Type.Enum(RELAY_ERROR_CODES),
  message: Type.String({ description: "What was wrong, with which value, and what to do." }),
  details: Type.Optional(membersSchema),
};

/** The native wire's error body: `{"error":{code,message,details?}}`. */
export const ErrorBodySchema = Type.Object({ error: Type.Object(errorMembers) }, { title: "Error" });
export type ErrorBody = Frozen<Static<typeof ErrorBodySchema>>;

export function toErrorBody({ code, message, details }: RelayError): ErrorBody {
  return { error: { code, message, ...(details === undefined ? {} : { details }) } };
}
