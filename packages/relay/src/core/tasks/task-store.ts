import type { AgentId, Artifact, TaskState } from "@a2a-relay/protocol";
import type { CachedResult, TaskRecord } from "./task-record.ts";

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
  /** Tasks with this client id that the agent, or anybody, asked for or works on, newest first; as a rule one. */
  tasksWithClientId(
    tenant: string,
    agentId: AgentId | undefined,
    clientId: string,
  ): Promise<readonly TaskRecord[]>;
  /** The unfinished task, if any, whose result will be remembered under this key; the oldest. */
  unfinishedWithResultKey(tenant: string, resultKey: string): Promise<TaskRecord | undefined>;
  cachedResult(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined>;
  /** Forgets results that are over, and the oldest beyond `keptMax` of a tenant. Answers how many. */
  forgetCachedResults(nowMs: number, keptMax: number): Promise<number>;
  /** In the order in which they were first put. */
  artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]>;
  /** How many artifacts each of these tasks has; those without any are left out. */
  countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Unfinished tasks whose deadline has passed. */
  overdueTasks(nowMs: number, limit: number): Promise<readonly TaskRecord[]>;
}
