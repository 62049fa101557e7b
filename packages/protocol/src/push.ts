import { type Static, Type } from "typebox";
import { exactly } from "./exactly.ts";
import { LIMITS } from "./limits.ts";

/** How the relay reaches an agent at its callback URL: with signed posts of its own, or as any A2A client would. */
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
    description: "Pushes again all open mail that was accepted since, ISO 8601.",
  }),
});
export type PushReplayRequest = Static<typeof PushReplayRequestSchema>;

export const PushQuerySchema = exactly({
  state: Type.Optional(Type.Enum(PUSH_STATES)),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.listLimitMax, default: LIMITS.listLimitDefault }),
  ),
});
export type PushQuery = Static<typeof PushQuerySchema>;

/** One request to an endpoint. Without a status there was no answer, and `error` says why. */
export interface PushAttemptView {
  readonly attempt: number;
  readonly at: string;
  readonly duration_ms: number;
  readonly status?: number;
  readonly error?: string;
  /** The beginning of what came back; only for the agent itself and for operators. */
  readonly answer?: string;
}

/** What became of pushing one message. Whatever it is, the mail is in the mailbox until it is acknowledged. */
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
  /** Failures in a row; at some number the circuit opens and the endpoint is left alone for a while. */
  readonly failures: number;
  readonly circuit: "closed" | "open";
  readonly open_until?: string;
  readonly pending: number;
  /** The secret before this one still signs until then. */
  readonly old_secret_until?: string;
  /** Newest first. */
  readonly pushes: readonly PushView[];
}

/** The one answer that has the secret: `push_secret` is shown here and never again. */
export interface PushRotated {
  readonly agent_id: string;
  readonly push_secret: string;
  readonly old_secret_until: string;
}

export interface PushReplayed {
  readonly agent_id: string;
  readonly replayed: number;
}

/** What a webhook carries: the form that Standard Webhooks suggests. */
export interface PushPayload {
  readonly type: "message.available" | "message.notice";
  readonly timestamp: string;
  readonly data: unknown;
}
