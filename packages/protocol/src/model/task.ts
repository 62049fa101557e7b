import { type Static, Type } from "typebox";
import { exactly, reasonSchema } from "../base/schema.ts";
import { LIMITS } from "../base/limits.ts";
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

/** One handoff of a task from agent to agent. */
export interface HandoffStep {
  readonly from: string;
  readonly to: string;
  readonly message_id: string;
  readonly at: string;
}

/** A task in answers of the API. */
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
  /** Completed with a plain message; a waiting A2A caller got only that message. */
  readonly plain?: true;
  readonly artifacts: readonly Artifact[];
  readonly handoffs: readonly HandoffStep[];
  readonly created_at: string;
  readonly updated_at: string;
}

/** A task in a list, without its artifacts. */
export type TaskSummary = Omit<TaskView, "artifacts"> & { readonly artifact_count: number };

export interface TaskTreeView {
  readonly task: TaskSummary;
  readonly children: readonly TaskTreeView[];
}

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
