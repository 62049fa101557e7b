import { RelayError } from "@a2a-relay/protocol";
import type { Topic } from "../../../core/ports/change-feed.ts";

/** Deadlock, serialization failure: the transaction was rolled back and may be repeated. */
const TRANSIENT_CODES = new Set(["40P01", "40001"]);
const STALE_PLAN = "0A000";
const FAILED_TRANSACTION = "25P02";
const CHECK_VIOLATION = "23514";
const DISK_FULL = "53100";
/** The server is a standby, or has become one: another connection may lead to the primary. */
const READ_ONLY = "25006";
/** Connection, standby, password, resources, limits such as a full queue of notifications, locks, shutdown. */
const OUTAGE_CLASSES = /^(?:08|25006|28|53|54|55|57)/;

function codeOf(reason: unknown): string | undefined {
  const code = (reason as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

export function isTransient(reason: unknown): boolean {
  return TRANSIENT_CODES.has(codeOf(reason) ?? "");
}

/** A prepared statement has other columns than before, because a migration has added one. Nothing was written. */
export function isStalePlan(reason: unknown): boolean {
  return codeOf(reason) === STALE_PLAN;
}

/** A row has no partition: a check violation without the name of a constraint. */
export function isPartitionMissing(reason: unknown): boolean {
  return codeOf(reason) === CHECK_VIOLATION && (reason as { constraint?: string }).constraint === undefined;
}

/** An earlier statement of the transaction has failed. */
export function isFollowUp(reason: unknown): boolean {
  return codeOf(reason) === FAILED_TRANSACTION;
}

/** The connection broke, the server ended it, or it did not answer in time. */
export function isLost(reason: unknown): boolean {
  if (!isAnswer(reason)) return isOfDriver(reason);
  // A server may translate the word. Then the connection is replaced, which does no harm.
  return reason.severity !== "ERROR" || reason.code === READ_ONLY;
}

/**
 * The connection was lost after the commit was sent: only the server knows whether it committed. Its status by the id
 * of the transaction would not tell either, because a server that crashed gives the id to another transaction.
 */
export class CommitUnknownError extends RelayError {
  /** What the commit wakes if it happened. */
  readonly topics: readonly Topic[];

  constructor(topics: Iterable<Topic>, cause: unknown) {
    const what = "the connection to the database broke during the commit";
    super("unavailable", `${what}, so this may have been written; repeat it with the same key`, { cause });
    this.topics = [...topics];
  }
}

/** What a caller is told. A single statement that ends with `unavailable` may have been executed. */
export function relayErrorFrom(reason: unknown): RelayError {
  if (reason instanceof RelayError) return reason;
  const code = codeOf(reason);
  if (code === DISK_FULL) {
    return new RelayError("storage_full", "the database's disk is full; nothing was written", {
      cause: reason,
    });
  }
  if (!isOutage(reason)) return RelayError.from(reason);
  return new RelayError("unavailable", "the database does not answer; try again", { cause: reason });
}

function isOutage(reason: unknown): boolean {
  if (!isAnswer(reason)) return isOfDriver(reason);
  return OUTAGE_CLASSES.test(reason.code) || isTransient(reason) || isLost(reason);
}

/** Only what the server answers has a severity. A code alone is not enough: EPIPE is of a socket. */
function isAnswer(reason: unknown): reason is { readonly severity: string; readonly code: string } {
  return typeof (reason as { readonly severity?: unknown } | undefined)?.severity === "string";
}

/** Errors of sockets and of the driver have no name of their own; our own mistakes are TypeErrors and the like. */
function isOfDriver(reason: unknown): boolean {
  return reason instanceof Error && (reason.name === "Error" || reason.name === "AggregateError");
}
