import type { A2aOperation, A2aVersion } from "@a2a-relay/protocol";
import type { A2aEventSource } from "./stream-event.ts";
import type { CallOptions } from "../http/http-exchange.ts";

/** Params or results of an operation, in 1.0. */
export type A2aParams = Readonly<Record<string, unknown>>;

export interface A2aCallOptions extends CallOptions {
  /** Makes a repeated send harmless if the agent supports it. */
  readonly idempotencyKey?: string | undefined;
}

export interface A2aOpenOptions extends A2aCallOptions {
  /** Resume after this event, if the agent numbers its events. */
  readonly lastEventId?: string | undefined;
}

/** Calls an agent over one of its interfaces. Params and results are 1.0. */
export interface AgentBinding {
  call(operation: A2aOperation, params: A2aParams, options: A2aCallOptions): Promise<A2aParams>;
  /** One attempt to open a stream. */
  open(
    operation: "stream" | "subscribe",
    params: A2aParams,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource>;
}

/** Operations that may safely be repeated. */
export const READING_OPERATIONS: readonly A2aOperation[] = [
  "get",
  "list",
  "push-get",
  "push-list",
  "extended-card",
];

export interface StreamLimits {
  readonly idleMs: number;
  readonly charsMax: number;
}

/** Versions before 1.0 have no version header, and browsers would send a preflight for it. */
export function callHeaders(version: A2aVersion, options: A2aOpenOptions): Record<string, string> {
  const { idempotencyKey, lastEventId } = options;
  return {
    ...(version === "1.0" ? { "a2a-version": version } : {}),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  };
}
