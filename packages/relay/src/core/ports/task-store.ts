import type { AgentId, Artifact, TaskState } from "@a2a-relay/protocol";
import type { CachedResult, TaskRecord } from "./task-record.ts";
import type { TaskUpdate } from "../rules/task-update.ts";

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

/** What an A2A caller lists: what it asked of one agent, the newest change first. */
export interface AskedTasksQuery {
  readonly tenant: string;
  readonly askedOf: AgentId;
  readonly requester: AgentId;
  readonly state: TaskState | undefined;
  readonly threadId: string | undefined;
  /** Changed at this time or later. */
  readonly sinceMs: number;
  /** Asked at this time or later: what came before was of another owner of the requester's id. */
  readonly createdSinceMs: number;
  /** The last one of the page before. */
  readonly before: { readonly updatedAtMs: number; readonly id: string } | undefined;
  readonly limit: number;
}

export interface AskedTasksPage {
  readonly tasks: readonly TaskRecord[];
  readonly hasMore: boolean;
  /** Of all pages together. */
  readonly total: number;
}

export interface TaskUpdatesQuery {
  readonly tenant: string;
  readonly taskId: string;
  readonly afterN: number;
  /** False: only what was said. */
  readonly withArtifacts: boolean;
  readonly limit: number;
  /** All steps of one answer together, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
}

/** What was said about a task, the newest first; artifacts are left out. */
export interface LastTaskUpdatesQuery {
  readonly tenant: string;
  readonly taskId: string;
  /** The newest one to be read. */
  readonly untilN: number;
  readonly statusOnly: boolean;
  readonly limit: number;
  /** As of `TaskUpdatesQuery`. */
  readonly bytesMax: number;
}

export interface TaskUpdatesPage {
  readonly updates: readonly TaskUpdate[];
  readonly hasMore: boolean;
}

/** A task and all its artifacts at one moment. */
export interface WholeTask {
  readonly task: TaskRecord;
  readonly artifacts: readonly Artifact[];
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
  /** Read together, so that nothing is in one of the two that the other does not know of. */
  taskWithArtifacts(tenant: string, id: string): Promise<WholeTask | undefined>;
  /** How many artifacts each of these tasks has; those without any are left out. */
  countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Those that were answered with a plain message are left out. */
  askedTasks(query: AskedTasksQuery): Promise<AskedTasksPage>;
  /** In the order of their numbers. They go with their task. */
  taskUpdates(query: TaskUpdatesQuery): Promise<TaskUpdatesPage>;
  lastTaskUpdates(query: LastTaskUpdatesQuery): Promise<TaskUpdatesPage>;
  /** Unfinished tasks whose deadline has passed. */
  overdueTasks(nowMs: number, limit: number): Promise<readonly TaskRecord[]>;
}
