import type { A2aOperation, A2aStreamResponse } from "@a2a-relay/protocol";
import type { CallOptions } from "../http-exchange.ts";

/** What is asked, in 1.0. */
export type A2aParams = Readonly<Record<string, unknown>>;

export interface A2aCallOptions extends CallOptions {
  /** Makes a repeated send harmless where the agent heeds it. */
  readonly idempotencyKey?: string | undefined;
}

export interface A2aOpenOptions extends A2aCallOptions {
  /** After which event to go on, where the agent numbers them. */
  readonly lastEventId?: string | undefined;
}

/** One event of a stream, in 1.0, and what to come back with if the agent numbers its events. */
export type A2aStreamEvent = A2aStreamResponse & { readonly eventId?: string };

/** Events as they come; undefined once there are no more. `unavailable` when the connection broke. */
export interface A2aEventSource {
  /** How long the agent asks to wait before coming back. */
  readonly retryMs?: number | undefined;
  next(): Promise<A2aStreamEvent | undefined>;
  /** Hangs up. Harmless when it has ended. */
  cancel(): void;
}

/** One way of asking an agent, over one of its interfaces. What goes in and comes out is 1.0. */
export interface AgentBinding {
  call(operation: A2aOperation, params: A2aParams, options: A2aCallOptions): Promise<A2aParams>;
  /** An answer that goes on; one try. */
  open(
    operation: "stream" | "subscribe",
    params: A2aParams,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource>;
}

/** What may be asked twice without harm. */
export const READING_OPERATIONS: readonly A2aOperation[] = [
  "get",
  "list",
  "push-get",
  "push-list",
  "extended-card",
];
