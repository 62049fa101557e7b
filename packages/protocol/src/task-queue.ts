import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "./delivery.ts";
import { exactly } from "./exactly.ts";
import { LIMITS } from "./limits.ts";
import { DUPLICATE_SAFETIES } from "./message.ts";
import type { RelayErrorCode, RelayErrorDetails } from "./relay-error.ts";
import { RetryStaleRequestSchema } from "./retry-stale.ts";
import { RESULT_STATUSES } from "./task.ts";

// The task-queue wire: tasks and results as flat objects. Members that are absent are left out, never null.

const id = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });
const optional = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** An agent as this wire names it: `display` is for people, `pubkey` is who it is. */
export const QueueAgentSchema = Type.Object(
  { display: id, pubkey: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })) },
  { additionalProperties: false, title: "AgentId" },
);
export interface QueueAgent {
  readonly display: string;
  readonly pubkey?: string;
}

const agent = Type.Union([QueueAgentSchema, id]);
/** Not blank where the seed wants something; the core says so in the seed's own words. */
const text = Type.String();

export const QueueTaskSchema = Type.Object(
  {
    id,
    sender: agent,
    recipient: agent,
    intent_text: text,
    task_kind: optional(Type.String({ maxLength: LIMITS.idCharsMax })),
    parent: optional(id),
    deadline_ms: optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 })),
    idempotency: optional(
      Type.Object({
        duplicate_safety: Type.Enum(DUPLICATE_SAFETIES),
        key: Type.String({ maxLength: LIMITS.idempotencyKeyCharsMax }),
      }),
    ),
  },
  { title: "QueueTask" },
);
export type QueueTaskInput = Static<typeof QueueTaskSchema>;

export interface QueueTask {
  readonly id: string;
  readonly sender: QueueAgent;
  readonly recipient: QueueAgent;
  readonly intent_text: string;
  readonly task_kind?: string;
  readonly parent?: string;
  readonly deadline_ms?: number;
  readonly idempotency?: { readonly duplicate_safety: "unsafe" | "idempotent"; readonly key: string };
}

export const QueueContentSchema = Type.Union([
  exactly({ type: Type.Literal("text"), text }),
  exactly({ type: Type.Literal("json"), value: Type.Unknown() }),
]);
export type QueueContent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "json"; readonly value: unknown };

export const QueueTaskResultSchema = Type.Object(
  {
    task_id: id,
    status: Type.Enum(RESULT_STATUSES),
    content: Type.Optional(Type.Array(QueueContentSchema, { maxItems: LIMITS.partsMax })),
    error_message: optional(text),
    lease_id: optional(id),
  },
  { title: "QueueTaskResult" },
);
export type QueueTaskResultInput = Static<typeof QueueTaskResultSchema>;

export interface QueueTaskResult {
  readonly task_id: string;
  readonly status: (typeof RESULT_STATUSES)[number];
  readonly content: readonly QueueContent[];
  readonly error_message?: string;
}

/** The lease beside the task or result that was taken: what a worker renews, and finishes with. */
export interface QueueLease {
  readonly lease_id: string;
  readonly attempt: number;
  readonly leased_at_ms: number;
  readonly message_id: string;
  /** The relay's own id of the task. */
  readonly relay_task_id: string;
}

export const QUEUE_STATES = ["queued", "in_flight"] as const;
export type QueueState = (typeof QUEUE_STATES)[number];

export interface QueueTaskEntry {
  readonly state: QueueState;
  readonly task: QueueTask;
  readonly lease_id?: string;
  readonly leased_to?: QueueAgent;
  readonly leased_at_ms?: number;
  readonly attempt: number;
}

const limit = Type.Optional(
  Type.Integer({ minimum: 0, maximum: LIMITS.listLimitMax, default: LIMITS.queueLimitDefault }),
);
const waitMs = Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.waitMsMax, default: 0 }));
/** Whose mail, for an operator; an agent takes its own. */
const forAgent = Type.Optional(id);

/** The agent that an operator speaks for, where the body has no place for it. */
export const QueueCallerSchema = exactly({ agent: forAgent });

export const QueueNextSchema = exactly({ agent: forAgent, worker: Type.Optional(id), wait_ms: waitMs });
export type QueueNext = Static<typeof QueueNextSchema>;

export const ResultNextSchema = exactly({
  agent: forAgent,
  wait_ms: waitMs,
  ack: Type.Optional(
    Type.Enum(["now", "explicit"] as const, {
      description: "now: taken is done. explicit: it comes back unless it is acknowledged under its lease.",
    }),
  ),
});
export type ResultNext = Static<typeof ResultNextSchema>;

export const ResultAckSchema = exactly({ agent: forAgent, message_id: id, lease_id: id });
export type ResultAck = Static<typeof ResultAckSchema>;

export const QueueRecentSchema = exactly({ agent: forAgent, limit });
export interface QueueRecent {
  readonly agent?: string;
  readonly limit?: number;
}

export const TaskQueueQuerySchema = exactly({
  agent: forAgent,
  limit,
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  deadline_within_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  state_filter: Type.Optional(Type.Enum(QUEUE_STATES)),
});
export interface TaskQueueQuery {
  readonly agent?: string;
  readonly limit?: number;
  readonly min_lease_age_ms?: number;
  readonly deadline_within_ms?: number;
  readonly state_filter?: QueueState;
}

export const QueueRepairRequestSchema = exactly({
  task_id: id,
  reason: text,
  command: Type.Union([
    exactly({
      action: Type.Literal("requeue"),
      lease_id: optional(id),
      duplicate_risk: Type.Enum(DUPLICATE_RISKS),
    }),
    exactly({ action: Type.Literal("force_error"), lease_id: optional(id), message: text }),
  ]),
});
export type QueueRepairRequest = Static<typeof QueueRepairRequestSchema>;

export interface QueueRepairOutcome {
  readonly task_id: string;
  readonly action: "requeued" | "forced_error";
  readonly state: "queued" | "result_pending";
  readonly attempt: number;
  readonly result?: QueueTaskResult;
}

/** The policy by itself, or wrapped as `policy`. */
export const QueueRetryStaleSchema = exactly({
  policy: Type.Optional(RetryStaleRequestSchema),
  ...RetryStaleRequestSchema.properties,
});

export interface QueueRetryReport {
  readonly policy: {
    readonly enabled: boolean;
    readonly min_lease_age_ms: number;
    readonly max_attempts: number;
    readonly max_requeues: number;
    readonly scan_limit: number;
  };
  readonly considered: number;
  readonly requeued: readonly {
    readonly task_id: string;
    readonly lease_id: string;
    readonly attempt: number;
    readonly idempotency_key: string;
  }[];
  readonly skipped: readonly {
    readonly task_id: string;
    readonly reason: string;
    readonly attempt: number;
    readonly lease_age_ms?: number;
  }[];
}

export interface QueueTaskAccepted {
  readonly kind: "a2a_task_queued";
  readonly task_id: string;
}

export interface QueueTaskOption {
  readonly kind: "a2a_task_opt";
  readonly task: QueueTask | null;
  readonly lease?: QueueLease;
}

export interface QueueTasks {
  readonly kind: "a2a_tasks";
  readonly tasks: readonly QueueTask[];
}

export interface QueueResultAccepted {
  readonly kind: "a2a_result_posted";
  readonly task_id: string;
}

export interface QueueResultOption {
  readonly kind: "a2a_result_opt";
  readonly result: QueueTaskResult | null;
  /** Only where it waits to be acknowledged. */
  readonly lease?: QueueLease;
}

export interface QueueResultAcked {
  readonly kind: "a2a_result_acked";
  readonly task_id: string;
}

export interface QueueResults {
  readonly kind: "a2a_results";
  readonly results: readonly QueueTaskResult[];
}

/** The queue, and the filters that were in force; null is off. */
export interface QueueSnapshot {
  readonly kind: "a2a_queue";
  readonly limit: number;
  readonly min_lease_age_ms: number | null;
  readonly deadline_within_ms: number | null;
  readonly state_filter: QueueState | null;
  readonly tasks: readonly QueueTaskEntry[];
  readonly results: readonly QueueTaskResult[];
}

export interface QueueRepaired {
  readonly kind: "a2a_repaired";
  readonly outcome: QueueRepairOutcome;
}

export interface QueueAutoRetried {
  readonly kind: "a2a_auto_retried";
  readonly report: QueueRetryReport;
}

export interface QueueCompacted {
  readonly kind: "a2a_compacted";
  /** How many messages left the relay for its archive. */
  readonly dropped: number;
}

/** This wire's error body. */
export interface QueueErrorBody {
  readonly kind: "error";
  readonly message: string;
  readonly code: RelayErrorCode;
  readonly details?: RelayErrorDetails;
}
