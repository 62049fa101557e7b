import type { A2aMessage, A2aPushConfig, A2aState, JsonObject, Part } from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import { createIdempotencyKey } from "../http/idempotency.ts";

/** A text, or a message with parts; the client fills in missing members. */
export type A2aMessageInput = string | (Partial<A2aMessage> & { readonly parts: readonly Part[] });

/** Where the agent should push updates of a task. */
export type A2aPushConfigInput = Omit<Partial<A2aPushConfig>, "url"> & { readonly url: string };

export interface A2aSendOptions extends CallOptions {
  /** The context of the message. */
  readonly contextId?: string | undefined;
  /** The task to continue, after `TASK_STATE_INPUT_REQUIRED`. */
  readonly taskId?: string | undefined;
  /** Of the request, not of the message. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The agent answers with the new task. Default false: it answers when the task is settled. */
  readonly returnImmediately?: boolean | undefined;
  /** How many messages of the history to return; 0 is none. Absent: the agent decides. */
  readonly historyLength?: number | undefined;
  readonly acceptedOutputModes?: readonly string[] | undefined;
  readonly pushConfig?: A2aPushConfigInput | undefined;
  /** Sent as `Idempotency-Key`: an agent that supports it, as a relay does, handles repeated requests once. */
  readonly idempotencyKey?: string | undefined;
}

export interface A2aGetTaskOptions extends CallOptions {
  readonly historyLength?: number | undefined;
}

export interface A2aTasksQuery {
  readonly contextId?: string | undefined;
  readonly status?: A2aState | undefined;
  readonly pageSize?: number | undefined;
  readonly pageToken?: string | undefined;
  readonly historyLength?: number | undefined;
  /** ISO 8601. */
  readonly statusTimestampAfter?: string | undefined;
  readonly includeArtifacts?: boolean | undefined;
}

export interface A2aSubscribeOptions extends CallOptions {
  /** The `eventId` of the last event, if the agent numbers its events. */
  readonly lastEventId?: string | undefined;
}

export interface A2aCardOptions extends CallOptions {
  /** The card for authenticated callers. */
  readonly extended?: boolean | undefined;
}

export function sendParams(input: A2aMessageInput, options: A2aSendOptions): JsonObject {
  const { metadata, returnImmediately = false, historyLength, acceptedOutputModes, pushConfig } = options;
  return defined({
    message: messageOf(input, options),
    configuration: defined({
      returnImmediately,
      historyLength,
      acceptedOutputModes,
      taskPushNotificationConfig: pushConfig,
    }),
    metadata,
  });
}

/** Removes undefined members: dialects would rename them too. */
export function defined(members: object): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function messageOf(input: A2aMessageInput, { contextId, taskId }: A2aSendOptions): JsonObject {
  const written = typeof input === "string" ? { parts: [{ text: input }] } : input;
  return {
    messageId: createIdempotencyKey(),
    role: "ROLE_USER",
    ...defined({ contextId, taskId }),
    ...defined(written),
  };
}
