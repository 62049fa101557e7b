import type { A2aOperation, A2aStreamResponse, A2aVersion } from "@a2a-relay/protocol";
import type { A2aEventSource } from "./stream-event.ts";
import type { CallOptions } from "../http/http-exchange.ts";

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

/** Bounds of a stream: how long it may be silent, and its longest event. */
export interface StreamLimits {
  readonly idleMs: number;
  readonly charsMax: number;
}

/** Versions before 1.0 have no header for it, and browsers would ask their servers about one in vain. */
export function callHeaders(version: A2aVersion, options: A2aOpenOptions): Record<string, string> {
  const { idempotencyKey, lastEventId } = options;
  return {
    ...(version === "1.0" ? { "a2a-version": version } : {}),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  };
}
