import { type Static, Type } from "typebox";
import { exactly } from "./exactly.ts";
import { LIMITS } from "./limits.ts";
import { type Artifact, ArtifactSchema, PartsSchema } from "./part.ts";

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

/** One step of a task's way from agent to agent. */
export interface HandoffStep {
  readonly from: string;
  readonly to: string;
  readonly message_id: string;
  readonly at: string;
}

/** A task as the API shows it. */
export interface TaskView {
  readonly id: string;
  readonly state: TaskState;
  readonly requester: string;
  readonly assignee: string;
  readonly thread_id: string;
  readonly message_id: string;
  readonly subject: string;
  readonly parent?: string;
  readonly deadline_ms?: number;
  readonly status_text?: string;
  readonly result_status?: ResultStatus;
  readonly result_message_id?: string;
  /** It was completed with a plain message, which is all that an A2A caller who waited has seen of it. */
  readonly plain?: true;
  readonly artifacts: readonly Artifact[];
  readonly handoffs: readonly HandoffStep[];
  readonly created_at: string;
  readonly updated_at: string;
}

/** A task among others: what it made is asked for task by task. */
export type TaskSummary = Omit<TaskView, "artifacts"> & { readonly artifact_count: number };

export interface TaskTreeView {
  readonly task: TaskSummary;
  readonly children: readonly TaskTreeView[];
}

const reason = Type.String({ minLength: 1, maxLength: LIMITS.reasonCharsMax, pattern: "\\S" });
const leaseId = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: LIMITS.idCharsMax,
    description: "The lease under which the work was done; required while the task's mail is leased.",
  }),
);
const text = Type.Optional(Type.String({ description: "Plain text for the requester." }));
const members = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description }));
const a2aMessage = members("Members of the A2A message beside its parts: messageId, metadata, extensions.");
const metadata = members("A2A metadata of this step of the task, as those who follow it see it.");

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
      description: "Answer an A2A caller that waits with a plain message instead of the task.",
    }),
  ),
  a2a_message: a2aMessage,
  metadata,
  lease_id: leaseId,
});
export type TaskCompleteRequest = Static<typeof TaskCompleteRequestSchema>;

export const TaskFailRequestSchema = exactly({
  reason,
  parts: Type.Optional(PartsSchema),
  a2a_message: a2aMessage,
  metadata,
  lease_id: leaseId,
});
export type TaskFailRequest = Static<typeof TaskFailRequestSchema>;

export const TaskCancelRequestSchema = exactly({ reason: Type.Optional(reason) });
export type TaskCancelRequest = Static<typeof TaskCancelRequestSchema>;
