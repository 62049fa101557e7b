import { type Artifact, formatInstant, type TaskSummary, type TaskView } from "@a2a-relay/protocol";
import type { TaskRecord } from "../ports/tasks.ts";

/** A task as the API shows it. */
export function viewTask(task: TaskRecord, artifacts: readonly Artifact[]): TaskView {
  return { ...membersOf(task), artifacts };
}

/** A task as lists and trees show it. */
export function summarizeTask(task: TaskRecord, artifactCount: number): TaskSummary {
  return { ...membersOf(task), artifact_count: artifactCount };
}

function membersOf(task: TaskRecord): Omit<TaskView, "artifacts"> {
  return {
    id: task.id,
    state: task.state,
    requester: task.requester,
    assignee: task.assignee,
    thread_id: task.threadId,
    message_id: task.messageId,
    subject: task.subject,
    ...(task.parentId === null ? {} : { parent: task.parentId }),
    ...(task.deadlineMs === null ? {} : { deadline_ms: task.deadlineMs }),
    ...(task.statusText === null ? {} : { status_text: task.statusText }),
    ...(task.resultStatus === null ? {} : { result_status: task.resultStatus }),
    ...(task.resultMessageId === null ? {} : { result_message_id: task.resultMessageId }),
    ...(task.isPlain ? { plain: true } : {}),
    handoffs: task.handoffs,
    created_at: formatInstant(task.createdAtMs),
    updated_at: formatInstant(task.updatedAtMs),
  };
}
