import type { AgentId, Artifact, TaskState } from "@a2a-relay/protocol";
import type { TaskRecord } from "./task-record.ts";

export interface TaskFilter {
  readonly tenant: string;
  readonly state: TaskState | undefined;
  /** Requester or assignee. */
  readonly agentId: AgentId | undefined;
  readonly threadId: string | undefined;
  readonly parentId: string | undefined;
  /** Ids are time-ordered, so the last id of a page is the cursor of the next. */
  readonly afterId: string;
  readonly limit: number;
}

export interface TaskStore {
  task(tenant: string, id: string): Promise<TaskRecord | undefined>;
  tasks(filter: TaskFilter): Promise<readonly TaskRecord[]>;
  /** In the order in which they were first put. */
  artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]>;
  /** How many artifacts each of these tasks has; those without any are left out. */
  countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Unfinished tasks whose deadline has passed. */
  overdueTasks(nowMs: number, limit: number): Promise<readonly TaskRecord[]>;
}
