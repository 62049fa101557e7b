import { RelayError } from "@a2a-relay/protocol";

/** Deadlock, serialization failure: the transaction was rolled back and may be repeated. */
const TRANSIENT_CODES = new Set(["40P01", "40001"]);
const DISK_FULL = "53100";
const SQL_STATE = /^[0-9A-Z]{5}$/;
/** Connection, resources, lock timeout, shutdown. */
const OUTAGE_CLASSES = /^(?:08|53|55|57)/;

function codeOf(reason: unknown): string | undefined {
  const code = (reason as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

export function isTransient(reason: unknown): boolean {
  return TRANSIENT_CODES.has(codeOf(reason) ?? "");
}

/**
 * A write that ends with `unavailable` may have been written: the connection may break after the commit was sent. The
 * sender repeats it with the same key.
 */
export function relayErrorFrom(reason: unknown): RelayError {
  if (reason instanceof RelayError) return reason;
  const code = codeOf(reason);
  if (code === DISK_FULL) {
    return new RelayError("storage_full", "the database's disk is full; nothing was written", {
      cause: reason,
    });
  }
  if (!isOutage(reason, code)) return RelayError.from(reason);
  return new RelayError("unavailable", "the database does not answer; try again", { cause: reason });
}

/** Errors of a connection have no SQLSTATE; our own mistakes are TypeErrors and the like. */
function isOutage(reason: unknown, code: string | undefined): boolean {
  if (code !== undefined && SQL_STATE.test(code)) return OUTAGE_CLASSES.test(code) || isTransient(reason);
  return reason instanceof Error && (reason.name === "Error" || reason.name === "AggregateError");
}
