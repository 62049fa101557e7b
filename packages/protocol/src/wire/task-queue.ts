import { type Static, Type } from "typebox";
import { DUPLICATE_RISKS } from "../model/delivery.ts";
import { exactly, type Frozen, idSchema, nullable, waitMsSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
import { DUPLICATE_SAFETIES } from "../model/message.ts";
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
export type QueueAgent = Frozen<Static<typeof QueueAgentSchema>>;

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

/** A task in answers: absent members are left out. */
export const QueueTaskViewSchema = Type.Object(
  {
    id: Type.String(),
    sender: QueueAgentSchema,
    recipient: QueueAgentSchema,
    intent_text: Type.String(),
    task_kind: Type.Optional(Type.String()),
    parent: Type.Optional(Type.String()),
    deadline_ms: Type.Optional(Type.Integer()),
    idempotency: Type.Optional(
      Type.Object({ duplicate_safety: Type.Enum(DUPLICATE_SAFETIES), key: Type.String() }),
    ),
  },
  { title: "QueueTaskView" },
);
export type QueueTask = Frozen<Static<typeof QueueTaskViewSchema>>;

export const QueueContentSchema = Type.Union([
  exactly({ type: Type.Literal("text"), text }),
  exactly({ type: Type.Literal("json"), value: Type.Unknown() }),
]);
export type QueueContent = Frozen<Static<typeof QueueContentSchema>>;

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

export const QueueTaskResultViewSchema = Type.Object(
  {
    task_id: Type.String(),
    status: Type.Enum(RESULT_STATUSES),
    content: Type.Array(QueueContentSchema),
    error_message: Type.Optional(Type.String()),
  },
  { title: "QueueTaskResultView" },
);
export type QueueTaskResult = Frozen<Static<typeof QueueTaskResultViewSchema>>;

/** The lease of a taken task or result. */
export const QueueLeaseSchema = Type.Object(
  {
    lease_id: Type.String(),
    attempt: Type.Integer(),
    leased_at_ms: Type.Integer(),
    message_id: Type.String(),
    relay_task_id: Type.String({ description: "The relay's id of the task." }),
  },
  { title: "QueueLease" },
);
export type QueueLease = Frozen<Static<typeof QueueLeaseSchema>>;

export const QUEUE_STATES = ["queued", "in_flight"] as const;
export type QueueState = (typeof QUEUE_STATES)[number];

export const QueueTaskEntrySchema = Type.Object(
  {
    state: Type.Enum(QUEUE_STATES),
    task: QueueTaskViewSchema,
    lease_id: Type.Optional(Type.String()),
    leased_to: Type.Optional(QueueAgentSchema),
    leased_at_ms: Type.Optional(Type.Integer()),
    attempt: Type.Integer(),
  },
  { title: "QueueTaskEntry" },
);
export type QueueTaskEntry = Frozen<Static<typeof QueueTaskEntrySchema>>;

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
export type QueueRecent = Static<typeof QueueRecentSchema>;

export const TaskQueueQuerySchema = exactly({
  agent: forAgent,
  limit,
  min_lease_age_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  deadline_within_ms: Type.Optional(Type.Integer({ minimum: 0 })),
  state_filter: Type.Optional(Type.Enum(QUEUE_STATES)),
});
export type TaskQueueQuery = Static<typeof TaskQueueQuerySchema>;

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

/** The policy by itself, or wrapped as `policy`. */
export const QueueRetryStaleSchema = exactly({
  policy: Type.Optional(RetryStaleRequestSchema),
  ...RetryStaleRequestSchema.properties,
});
