import { type Static, Type } from "typebox";
import { exactly, type Frozen, instantSchema, listLimitSchema } from "../base/schema.ts";
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
export const PushAttemptViewSchema = Type.Object(
  {
    attempt: Type.Integer(),
    at: instantSchema,
    duration_ms: Type.Integer(),
    status: Type.Optional(Type.Integer()),
    error: Type.Optional(Type.String()),
    answer: Type.Optional(
      Type.String({
        description: "The beginning of the answer; only for the agent itself and for operators.",
      }),
    ),
  },
  { title: "PushAttempt" },
);
export type PushAttemptView = Frozen<Static<typeof PushAttemptViewSchema>>;

/** The pushes of one message. The message stays in the mailbox until it is acknowledged. */
export const PushViewSchema = Type.Object(
  {
    message_id: Type.String(),
    state: Type.Enum(PUSH_STATES),
    reason: Type.Optional(Type.String()),
    next_attempt_at: Type.Optional(instantSchema),
    attempts: Type.Array(PushAttemptViewSchema),
  },
  { title: "Push" },
);
export type PushView = Frozen<Static<typeof PushViewSchema>>;

export const PushEndpointViewSchema = Type.Object(
  {
    agent_id: Type.String(),
    push: Type.Enum(PUSH_MODES),
    callback_url: Type.String(),
    notice: Type.Boolean(),
    ack: Type.Boolean(),
    state: Type.Enum(["active", "disabled"] as const),
    reason: Type.Optional(Type.String({ description: "Why it is disabled." })),
    failures: Type.Integer({
      description: "Consecutive failures; after some of them the circuit opens and pushes pause.",
    }),
    circuit: Type.Enum(["closed", "open"] as const),
    open_until: Type.Optional(instantSchema),
    pending: Type.Integer(),
    old_secret_until: Type.Optional(
      Type.String({ format: "date-time", description: "Until then the previous secret signs too." }),
    ),
    pushes: Type.Array(PushViewSchema, { description: "Newest first." }),
  },
  { title: "PushEndpoint" },
);
export type PushEndpointView = Frozen<Static<typeof PushEndpointViewSchema>>;

/** The only answer that holds the secret. */
export const PushRotatedSchema = Type.Object(
  { agent_id: Type.String(), push_secret: Type.String(), old_secret_until: instantSchema },
  { title: "PushRotated" },
);
export type PushRotated = Frozen<Static<typeof PushRotatedSchema>>;

export const PushReplayedSchema = Type.Object(
  { agent_id: Type.String(), replayed: Type.Integer() },
  { title: "PushReplayed" },
);
export type PushReplayed = Frozen<Static<typeof PushReplayedSchema>>;

/** The body of a webhook, in the form that Standard Webhooks suggests. */
export interface PushPayload {
  readonly type: "message.available" | "message.notice";
  readonly timestamp: string;
  readonly data: unknown;
}
