import type { AgentId, Artifact, HandoffStep, Part, ResultStatus, TaskState } from "@a2a-relay/protocol";

/** The work that a request or handoff asks for. */
export interface TaskRecord {
  readonly tenant: string;
  readonly id: string;
  readonly requester: AgentId;
  readonly assignee: AgentId;
  readonly state: TaskState;
  readonly threadId: string;
  /** The message that asked for it, or that handed it over last: its receipts show the work. */
  readonly messageId: string;
  readonly subject: string;
  /** The id that its requester gave it on a wire where clients name tasks. */
  readonly clientId: string | null;
  /** The key that caches an `ok` result for later tasks; null for work that is not idempotent. */
  readonly resultKey: string | null;
  /** It is held until the unfinished task that does the same work is over. */
  readonly isWaiting: boolean;
  readonly parentId: string | null;
  readonly deadlineMs: number | null;
  readonly statusText: string | null;
  readonly resultStatus: ResultStatus | null;
  readonly resultMessageId: string | null;
  /** Compares a repeated completion with the accepted one. */
  readonly resultDigest: string | null;
  readonly handoffs: readonly HandoffStep[];
  /** The message that asked for it first, where it was handed over since. */
  readonly firstMessageId: string | null;
  /** The agent that the A2A caller asked, and asks about the task also after a handoff. */
  readonly askedOf: AgentId | null;
  /** A plain message answered it: an A2A caller sees that instead of a task. */
  readonly isPlain: boolean;
  /** The number of its updates, and their bytes as JSON. */
  readonly updateCount: number;
  readonly updateBytes: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly version: number;
}

export interface ArtifactRecord {
  readonly tenant: string;
  readonly taskId: string;
  readonly artifact: Artifact;
}

/** The result of an idempotent task, kept to answer the same task again without doing the work twice. */
export interface CachedResult {
  readonly tenant: string;
  readonly resultKey: string;
  readonly taskId: string;
  readonly text: string;
  readonly parts: readonly Part[] | null;
  readonly artifacts: readonly Artifact[];
  readonly storedAtMs: number;
  readonly expiresAtMs: number;
}

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

/** The tasks that an A2A caller asked of one agent, the newest change first. */
export interface AskedTasksQuery {
  readonly tenant: string;
  readonly askedOf: AgentId;
  readonly requester: AgentId;
  readonly state: TaskState | undefined;
  readonly threadId: string | undefined;
  /** Changed at this time or later. */
  readonly sinceMs: number;
  /** Created at this time or later: before it, the requester's id belonged to another owner. */
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
  /** False: leaves out artifacts. */
  readonly withArtifacts: boolean;
  readonly limit: number;
  /** The limit for all steps of one answer, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
}

/** The last updates of a task, the newest first, without artifacts. */
export interface LastTaskUpdatesQuery {
  readonly tenant: string;
  readonly taskId: string;
  /** The newest one to be read. */
  readonly untilN: number;
  readonly statusOnly: boolean;
  readonly limit: number;
  /** As in `TaskUpdatesQuery`. */
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

/**
 * One step of a task with its text; the journal has digests only. `n` counts from 1 for each task, so that all readers
 * see the same steps in the same order and can name the last one they saw.
 */
export interface TaskUpdate {
  readonly tenant: string;
  readonly taskId: string;
  readonly n: number;
  readonly atMs: number;
  readonly step: TaskStep;
}

export type TaskStep = StatusStep | ArtifactStep | MessageStep;

export interface StatusStep {
  readonly kind: "status";
  readonly state: TaskState;
  readonly said?: Said;
  /** What the agent added to the status itself. */
  readonly metadata?: A2aMembers;
}

/** An artifact that came whole, or a piece of one. */
export interface ArtifactStep {
  readonly kind: "artifact";
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly metadata?: A2aMembers;
}

/** The requester sent another message about the task. */
export interface MessageStep {
  readonly kind: "message";
  readonly messageId: string;
}

/** The text that the agent, or the relay for it, sent with a status. */
export interface Said {
  readonly text: string;
  readonly parts?: readonly Part[];
  /** The message that said it, where one did. */
  readonly messageId?: string;
  /** Members of the A2A message beside its parts: id, metadata, extensions, unknown ones. */
  readonly a2aMessage?: A2aMembers;
}

export type A2aMembers = Readonly<Record<string, unknown>>;

export interface TaskStore {
  /** As many as ids, in their order. */
  get(tenant: string, ids: readonly string[]): Promise<readonly (TaskRecord | undefined)[]>;
  list(filter: TaskFilter): Promise<readonly TaskRecord[]>;
  /** Tasks with this client id of the agent (undefined: of all agents), asked for or worked on, newest first. */
  withClientId(
    tenant: string,
    agentId: AgentId | undefined,
    clientId: string,
  ): Promise<readonly TaskRecord[]>;
  /** The unfinished task with this key that does the work; where all of them wait, the oldest. */
  unfinishedWithResultKey(tenant: string, resultKey: string): Promise<TaskRecord | undefined>;
  cachedResult(tenant: string, resultKey: string, nowMs: number): Promise<CachedResult | undefined>;
  /** In the order in which they were first put. */
  artifacts(tenant: string, taskId: string): Promise<readonly Artifact[]>;
  /** Both are of the same moment. */
  withArtifacts(tenant: string, id: string): Promise<WholeTask | undefined>;
  /** How many artifacts each of these tasks has; those without any are left out. */
  countArtifacts(tenant: string, taskIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Without those that a plain message answered. */
  asked(query: AskedTasksQuery): Promise<AskedTasksPage>;
  /** In the order of their numbers. They are removed with their task. */
  updates(query: TaskUpdatesQuery): Promise<TaskUpdatesPage>;
  lastUpdates(query: LastTaskUpdatesQuery): Promise<TaskUpdatesPage>;
}
