import { type Static, Type } from "typebox";
import type { Frozen } from "../base/schema.ts";
import { errorMembers } from "../base/relay-error.ts";
import { RetryStalePolicySchema } from "./repair.ts";
import {
  QUEUE_STATES,
  QueueLeaseSchema,
  QueueTaskEntrySchema,
  QueueTaskResultViewSchema,
  QueueTaskViewSchema,
} from "./task-queue.ts";

/** The answers of the task-queue wire. Each has a `kind`. */

export const QueueRepairOutcomeSchema = Type.Object(
  {
    task_id: Type.String(),
    action: Type.Enum(["requeued", "forced_error"] as const),
    state: Type.Enum(["queued", "result_pending"] as const),
    attempt: Type.Integer(),
    result: Type.Optional(QueueTaskResultViewSchema),
  },
  { title: "QueueRepairOutcome" },
);
export type QueueRepairOutcome = Frozen<Static<typeof QueueRepairOutcomeSchema>>;

export const QueueRetryReportSchema = Type.Object(
  {
    policy: RetryStalePolicySchema,
    considered: Type.Integer(),
    requeued: Type.Array(
      Type.Object({
        task_id: Type.String(),
        lease_id: Type.String(),
        attempt: Type.Integer(),
        idempotency_key: Type.String(),
      }),
    ),
    skipped: Type.Array(
      Type.Object({
        task_id: Type.String(),
        reason: Type.String(),
        attempt: Type.Integer(),
        lease_age_ms: Type.Optional(Type.Integer()),
      }),
    ),
  },
  { title: "QueueRetryReport" },
);
export type QueueRetryReport = Frozen<Static<typeof QueueRetryReportSchema>>;

export const QueueTaskAcceptedSchema = Type.Object({
  kind: Type.Literal("a2a_task_queued"),
  task_id: Type.String(),
});
export type QueueTaskAccepted = Frozen<Static<typeof QueueTaskAcceptedSchema>>;

export const QueueTaskOptionSchema = Type.Object({
  kind: Type.Literal("a2a_task_opt"),
  task: Type.Union([QueueTaskViewSchema, Type.Null()]),
  lease: Type.Optional(QueueLeaseSchema),
});
export type QueueTaskOption = Frozen<Static<typeof QueueTaskOptionSchema>>;

export const QueueTasksSchema = Type.Object({
  kind: Type.Literal("a2a_tasks"),
  tasks: Type.Array(QueueTaskViewSchema),
});
export type QueueTasks = Frozen<Static<typeof QueueTasksSchema>>;

export const QueueResultAcceptedSchema = Type.Object({
  kind: Type.Literal("a2a_result_posted"),
  task_id: Type.String(),
});
export type QueueResultAccepted = Frozen<Static<typeof QueueResultAcceptedSchema>>;

/** Without a lease, taking the result acknowledged it. */
export const QueueResultOptionSchema = Type.Object({
  kind: Type.Literal("a2a_result_opt"),
  result: Type.Union([QueueTaskResultViewSchema, Type.Null()]),
  lease: Type.Optional(QueueLeaseSchema),
});
export type QueueResultOption = Frozen<Static<typeof QueueResultOptionSchema>>;

export const QueueResultAckedSchema = Type.Object({
  kind: Type.Literal("a2a_result_acked"),
  task_id: Type.String(),
});
export type QueueResultAcked = Frozen<Static<typeof QueueResultAckedSchema>>;

export const QueueResultsSchema = Type.Object({
  kind: Type.Literal("a2a_results"),
  results: Type.Array(QueueTaskResultViewSchema),
});
export type QueueResults = Frozen<Static<typeof QueueResultsSchema>>;

const filter = Type.Union([Type.Integer(), Type.Null()]);

/** The queue and the applied filters; null means no filter. */
export const QueueSnapshotSchema = Type.Object({
  kind: Type.Literal("a2a_queue"),
  limit: Type.Integer(),
  min_lease_age_ms: filter,
  deadline_within_ms: filter,
  state_filter: Type.Union([Type.Enum(QUEUE_STATES), Type.Null()]),
  tasks: Type.Array(QueueTaskEntrySchema),
  results: Type.Array(QueueTaskResultViewSchema),
});
export type QueueSnapshot = Frozen<Static<typeof QueueSnapshotSchema>>;

export const QueueRepairedSchema = Type.Object({
  kind: Type.Literal("a2a_repaired"),
  outcome: QueueRepairOutcomeSchema,
});
export type QueueRepaired = Frozen<Static<typeof QueueRepairedSchema>>;

export const QueueAutoRetriedSchema = Type.Object({
  kind: Type.Literal("a2a_auto_retried"),
  report: QueueRetryReportSchema,
});
export type QueueAutoRetried = Frozen<Static<typeof QueueAutoRetriedSchema>>;

export const QueueCompactedSchema = Type.Object({
  kind: Type.Literal("a2a_compacted"),
  dropped: Type.Integer({ description: "How many messages moved to the archive." }),
});
export type QueueCompacted = Frozen<Static<typeof QueueCompactedSchema>>;

/** This wire's error body. */
export const QueueErrorBodySchema = Type.Object(
  { kind: Type.Literal("error"), ...errorMembers },
  { title: "TaskQueueError" },
);
export type QueueErrorBody = Frozen<Static<typeof QueueErrorBodySchema>>;
