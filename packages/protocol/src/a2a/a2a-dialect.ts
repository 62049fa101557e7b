import type { AgentCard } from "../model/agent.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";

export const A2A_VERSIONS = ["1.0", "0.3", "0.2", "0.1"] as const;
export type A2aVersion = (typeof A2A_VERSIONS)[number];

/** The operations of A2A under our names: each dialect and binding has its own. */
export const A2A_OPERATIONS = [
  "send",
  "stream",
  "get",
  "list",
  "cancel",
  "subscribe",
  "push-create",
  "push-get",
  "push-list",
  "push-delete",
  "extended-card",
] as const;
export type A2aOperation = (typeof A2A_OPERATIONS)[number];

/** What older dialects write into an event and 1.0 does not. */
export interface A2aEventPosition {
  /** The last event of the stream. */
  readonly isFinal: boolean;
  /** The number of the artifact within its task, from 0: in 0.1 artifacts have numbers instead of ids. */
  readonly artifactIndex?: number;
}

/**
 * One way of writing A2A as JSON. The relay and the client work with 1.0; a dialect converts to it and back. It moves
 * and renames members and never drops unknown ones.
 */
export interface A2aDialect {
  readonly version: A2aVersion;
  /** The JSON-RPC methods; the dialect does not serve an operation without one. */
  readonly methods: Readonly<Partial<Record<A2aOperation, string>>>;
  /** For servers. Throws `invalid_argument` only when the params cannot be read at all. */
  readParams(operation: A2aOperation, params: unknown): Readonly<Record<string, unknown>>;
  /** For clients. */
  writeParams(operation: A2aOperation, params: Readonly<Record<string, unknown>>): unknown;
  /** For clients; liberal. */
  readResult(operation: A2aOperation, result: unknown): Readonly<Record<string, unknown>>;
  /** For servers. */
  writeResult(operation: A2aOperation, result: Readonly<Record<string, unknown>>): unknown;
  readEvent(event: unknown): A2aStreamResponse;
  writeEvent(event: A2aStreamResponse, position: A2aEventPosition): unknown;
  /** The body of a push: the event, or the current task. */
  readonly pushes: "event" | "task";
  /** From 1.0. */
  writeCard(card: AgentCard): AgentCard;
  /** To 1.0. */
  readCard(card: AgentCard): AgentCard;
}

/** Stream events have ids, and `Last-Event-ID` resumes after one. */
export const STREAM_RESUME_EXTENSION = "urn:a2a-relay:extension:stream-resume:v1";
/** The header `Idempotency-Key` makes a repeated send the same send. */
export const IDEMPOTENCY_KEY_EXTENSION = "urn:a2a-relay:extension:idempotency-key:v1";
/** Whether the agent is online; messages wait for it while it is not. */
export const AVAILABILITY_EXTENSION = "urn:a2a-relay:extension:availability:v1";

/** The relay offers these to callers of every agent. */
export const RELAY_EXTENSIONS = [
  STREAM_RESUME_EXTENSION,
  IDEMPOTENCY_KEY_EXTENSION,
  AVAILABILITY_EXTENSION,
] as const;
