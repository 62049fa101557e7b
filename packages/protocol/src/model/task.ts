import { type Static, Type } from "typebox";
import { exactly, type Frozen, instantSchema, reasonSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
import { ArtifactSchema, PartsSchema, StoredArtifactSchema } from "./part.ts";

export const TASK_STATES = [
  "submitted",
  "working",
  "input-required",
  "auth-required",
  "completed",
  "failed",
  "canceled",
  "rejected",
] as const;
export type TaskState = (typeof TASK_STATES)[number];

export const TERMINAL_TASK_STATES = ["completed", "failed", "canceled", "rejected"] as const;
export type TerminalTaskState = (typeof TERMINAL_TASK_STATES)[number];

export function isTerminal(state: TaskState): state is TerminalTaskState {
  return (TERMINAL_TASK_STATES as readonly string[]).includes(state);
}

export const RESULT_STATUSES = ["ok", "error", "partial"] as const;
export type ResultStatus = (typeof RESULT_STATUSES)[number];

/** One handoff of a task from agent to agent. */
export const HandoffStepSchema = Type.Object(
  { from: Type.String(), to: Type.String(), message_id: Type.String(), at: instantSchema },
  { title: "HandoffStep" },
);
export type HandoffStep = Frozen<Static<typeof HandoffStepSchema>>;

const taskMembers = {
  id: Type.String(),
  state: Type.Enum(TASK_STATES),
  requester: Type.String(),
  assignee: Type.String(),
  thread_id: Type.String(),
  message_id: Type.String(),
  subject: Type.String(),
  parent: Type.Optional(Type.String()),
  deadline_ms: Type.Optional(Type.Integer()),
  status_text: Type.Optional(Type.String()),
  result_status: Type.Optional(Type.Enum(RESULT_STATUSES)),
  result_message_id: Type.Optional(Type.String()),
  plain: Type.Optional(
    Type.Literal(true, {
      description: "Completed with a plain message; a waiting A2A caller got only that message.",
    }),
  ),
  handoffs: Type.Array(HandoffStepSchema),
  created_at: instantSchema,
  updated_at: instantSchema,
};

/** A task in answers of the API. */
export const TaskViewSchema = Type.Object(
  { ...taskMembers, artifacts: Type.Array(StoredArtifactSchema) },
  { title: "Task" },
);
export type TaskView = Frozen<Static<typeof TaskViewSchema>>;

/** A task in a list, without its artifacts. */
export const TaskSummarySchema = Type.Object(
  { ...taskMembers, artifact_count: Type.Integer() },
  { title: "TaskSummary" },
);
export type TaskSummary = Frozen<Static<typeof TaskSummarySchema>>;

export const TaskTreeViewSchema = Type.Cyclic(
  {
    TaskTree: Type.Object({ task: TaskSummarySchema, children: Type.Array(Type.Ref("TaskTree")) }),
  },
  "TaskTree",
);
export type TaskTreeView = Frozen<Static<typeof TaskTreeViewSchema>>;

const leaseId = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: LIMITS.idCharsMax,
    description: "The lease under which the work was done; required while the task's delivery is leased.",
  }),
);
const text = Type.Optional(Type.String({ description: "Plain text for the requester." }));
const members = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description }));
const a2aMessage = members("Members of the A2A message beside its parts: messageId, metadata, extensions.");
const metadata = members("A2A metadata of this update, for readers of the task.");

export const TaskStatusRequestSchema = exactly({
  state: Type.Enum(["working", "input-required", "auth-required"] as const),
  text,
  parts: Type.Optional(PartsSchema),
  a2a_message: a2aMessage,
  metadata,
  lease_id: leaseId,
});
export type TaskStatusRequest = Static<typeof TaskStatusRequestSchema>;

export const TaskArtifactRequestSchema = exactly({
  artifact: ArtifactSchema,
  append: Type.Optional(
    Type.Boolean({ description: "Add these parts to the artifact of the same id instead of replacing it." }),
  ),
  last_chunk: Type.Optional(
    Type.Boolean({
      description: "Nothing more of this artifact comes. True for one that is not appended to.",
    }),
  ),
  metadata,
  lease_id: leaseId,
});
export type TaskArtifactRequest = Static<typeof TaskArtifactRequestSchema>;

export const TaskCompleteRequestSchema = exactly({
  text,
  parts: Type.Optional(PartsSchema),
  artifacts: Type.Optional(Type.Array(ArtifactSchema, { maxItems: LIMITS.artifactsMax })),
  result_status: Type.Optional(Type.Enum(["ok", "partial"] as const)),
  plain: Type.Optional(
    Type.Boolean({
      description: "Answer a waiting A2A caller with a plain message instead of the task.",
    }),
  ),
  a2a_message: a2aMessage,
  metadata,
  lease_id: leaseId,
});
export type TaskCompleteRequest = Static<typeof TaskCompleteRequestSchema>;

export const TaskFailRequestSchema = exactly({
  reason: reasonSchema,
  parts: Type.Optional(PartsSchema),
  a2a_message: a2aMessage,
  metadata,
  lease_id: leaseId,
});
export type TaskFailRequest = Static<typeof TaskFailRequestSchema>;

export const TaskCancelRequestSchema = exactly({ reason: Type.Optional(reasonSchema) });
export type TaskCancelRequest = Static<typeof TaskCancelRequestSchema>;
