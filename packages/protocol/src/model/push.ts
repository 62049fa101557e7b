import { type Static, Type } from "typebox";
import { exactly, listLimitSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";

/** How the relay calls an agent at its callback URL: with signed webhooks, or as an A2A client. */
export const PUSH_MODES = ["webhook", "a2a"] as const;
export type PushMode = (typeof PUSH_MODES)[number];

export const PUSH_STATES = ["pending", "delivered", "failed", "dropped"] as const;
export type PushState = (typeof PUSH_STATES)[number];

export const PushRotateRequestSchema = exactly({
  overlap_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: LIMITS.pushSecretOverlapMsMax,
      default: LIMITS.pushSecretOverlapMsDefault,
      description: "How long the old secret goes on signing beside the new one.",
    }),
  ),
});
export type PushRotateRequest = Static<typeof PushRotateRequestSchema>;

export const PushReplayRequestSchema = exactly({
  since: Type.String({
    maxLength: 40,
    description: "Pushes again all open messages that were accepted since, ISO 8601.",
  }),
});
export type PushReplayRequest = Static<typeof PushReplayRequestSchema>;

export const PushQuerySchema = exactly({
  state: Type.Optional(Type.Enum(PUSH_STATES)),
  limit: listLimitSchema,
});
export type PushQuery = Static<typeof PushQuerySchema>;

/** One request to an endpoint. Without an answer there is no `status`, and `error` gives the reason. */
export interface PushAttemptView {
  readonly attempt: number;
  readonly at: string;
  readonly duration_ms: number;
  readonly status?: number;
  readonly error?: string;
  /** The beginning of the answer; only for the agent itself and for operators. */
  readonly answer?: string;
}

/** The pushes of one message. The message stays in the mailbox until it is acknowledged. */
export interface PushView {
  readonly message_id: string;
  readonly state: PushState;
  readonly reason?: string;
  readonly next_attempt_at?: string;
  readonly attempts: readonly PushAttemptView[];
}

/** `GET /agents/{id}/push`. */
export interface PushEndpointView {
  readonly agent_id: string;
  readonly push: PushMode;
  readonly callback_url: string;
  readonly notice: boolean;
  readonly ack: boolean;
  readonly state: "active" | "disabled";
  /** Why it is disabled. */
  readonly reason?: string;
  /** Consecutive failures; after some of them the circuit opens and pushes pause. */
  readonly failures: number;
  readonly circuit: "closed" | "open";
  readonly open_until?: string;
  readonly pending: number;
  /** Until then the previous secret signs too. */
  readonly old_secret_until?: string;
  /** Newest first. */
  readonly pushes: readonly PushView[];
}

/** The only answer that holds the secret. */
export interface PushRotated {
  readonly agent_id: string;
  readonly push_secret: string;
  readonly old_secret_until: string;
}

export interface PushReplayed {
  readonly agent_id: string;
  readonly replayed: number;
}

/** The body of a webhook, in the form that Standard Webhooks suggests. */
export interface PushPayload {
  readonly type: "message.available" | "message.notice";
  readonly timestamp: string;
  readonly data: unknown;
}
