import type { AgentCard } from "../agent.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";

export const A2A_VERSIONS = ["1.0", "0.3", "0.2", "0.1"] as const;
export type A2aVersion = (typeof A2A_VERSIONS)[number];

/** What can be asked of an A2A agent, by our own names: each dialect and binding has others. */
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

/** What an event does not say of itself, and older dialects write into it. */
export interface A2aEventPlace {
  /** The stream ends behind it. */
  readonly isFinal: boolean;
  /** Which of the task's artifacts this is a piece of, from 0: in 0.1 artifacts have numbers instead of ids. */
  readonly artifactIndex?: number;
}

/**
 * One way of writing A2A as JSON. The relay and the client think in 1.0; a dialect turns what is written into that and
 * back. It moves and renames members and never drops what it does not know.
 */
export interface A2aDialect {
  readonly version: A2aVersion;
  /** The JSON-RPC methods; an operation that has none is not served in this dialect. */
  readonly methods: Readonly<Partial<Record<A2aOperation, string>>>;
  /** For a server that reads: throws `invalid_argument` only where nothing can be made of it. */
  readParams(operation: A2aOperation, params: unknown): Readonly<Record<string, unknown>>;
  /** For a client that asks. */
  writeParams(operation: A2aOperation, params: Readonly<Record<string, unknown>>): unknown;
  /** For a client that reads, liberally. */
  readResult(operation: A2aOperation, result: unknown): Readonly<Record<string, unknown>>;
  /** For a server that answers. */
  writeResult(operation: A2aOperation, result: Readonly<Record<string, unknown>>): unknown;
  readEvent(event: unknown): A2aStreamResponse;
  writeEvent(event: A2aStreamResponse, said: A2aEventPlace): unknown;
  /** What is posted to a push configuration: the event itself, or the task as it stands. */
  readonly pushes: "event" | "task";
  /** A card in 1.0 as this dialect has it. */
  writeCard(card: AgentCard): AgentCard;
  /** A card of this dialect in 1.0. */
  readCard(card: AgentCard): AgentCard;
}
