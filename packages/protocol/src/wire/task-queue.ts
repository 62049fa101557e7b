import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "../model/delivery.ts";
import { exactly, idSchema, nullable, waitMsSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
import { DUPLICATE_SAFETIES } from "../model/message.ts";
import type { RelayErrorCode, RelayErrorDetails } from "../base/relay-error.ts";
import { RetryStaleRequestSchema } from "./repair.ts";
import { RESULT_STATUSES } from "../model/task.ts";

/*
 * The task-queue wire: tasks and results as flat objects. Absent members are left out, never null.
 *
 * Seeds 002 and 004 both say `A2ATaskResult`, for two shapes. Seed 004's types are the `QueueTask…` family here, and
 * its result is `QueueTaskResult`. Seed 002's result will be `A2aTaskResult`, beside `A2aTask` of the A2A protocol.
 */

const id = idSchema;

/** An agent on this wire: `display` is for people, `pubkey` identifies it. */
export const QueueAgentSchema = Type.Object(
  { display: id, pubkey: Type.Optional(Type.String({ maxLength: LIMITS.idCharsMax })) },
  { additionalProperties: false, title: "AgentId" },
);
export interface QueueAgent {
  readonly display: string;
  readonly pubkey?: string;
}

const agent = Type.Union([QueueAgentSchema, id]);
/** The core refuses blank text where the seed requires some, in the seed's words. */
const text = Type.String();

export const QueueTaskSchema = Type.Object(
  {
    id,
    sender: agent,
    recipient: agent,
    intent_text: text,
    task_kind: nullable(Type.String({ maxLength: LIMITS.idCharsMax })),
    parent: nullable(id),
    deadline_ms: nullable(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 })),
    idempotency: nullable(
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
    error_message: nullable(text),
    lease_id: nullable(id),
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

/** The lease of a taken task or result. */
export interface QueueLease {
  readonly lease_id: string;
  readonly attempt: number;
  readonly leased_at_ms: number;
  readonly message_id: string;
  /** The relay's id of the task. */
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
/** Operators name the agent; an agent's own key implies it. */
const forAgent = Type.Optional(id);

/** The agent that an operator acts for, on routes whose body does not name it. */
export const QueueCallerSchema = exactly({ agent: forAgent });

export const QueueNextSchema = exactly({ agent: forAgent, worker: Type.Optional(id), wait_ms: waitMsSchema });
export type QueueNext = Static<typeof QueueNextSchema>;

export const ResultNextSchema = exactly({
  agent: forAgent,
  wait_ms: waitMsSchema,
  ack: Type.Optional(
    Type.Enum(["now", "explicit"] as const, {
      description:
        "now: taking it acknowledges it. explicit: it comes back unless it is acknowledged under its lease.",
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
      lease_id: nullable(id),
      duplicate_risk: Type.Enum(DUPLICATE_RISKS),
    }),
    exactly({ action: Type.Literal("force_error"), lease_id: nullable(id), message: text }),
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
  /** Absent when taking the result acknowledged it. */
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

/** The queue and the applied filters; null means no filter. */
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
  /** How many messages moved to the archive. */
  readonly dropped: number;
}

/** This wire's error body. */
export interface QueueErrorBody {
  readonly kind: "error";
  readonly message: string;
  readonly code: RelayErrorCode;
  readonly details?: RelayErrorDetails;
}
