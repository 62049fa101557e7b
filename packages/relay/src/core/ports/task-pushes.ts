import type { A2aVersion, AgentId } from "@a2a-relay/protocol";

/** The push configuration of an A2A caller for one task, with its progress. */
export interface TaskPushConfig {
  readonly tenant: string;
  readonly taskId: string;
  /** Unique within its task. */
  readonly id: string;
  /** Who made it; `GUEST` stands for operators. Only the owner sees its secrets, and it gets only what it may read. */
  readonly owner: AgentId;
  readonly url: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
  /** The A2A version of its receiver: that of the call that made it. */
  readonly dialect: A2aVersion;
  /** `ended`: nothing is left to send, or the receiver no longer wants it. `failed`: the relay gave up. */
  readonly state: "active" | "ended" | "failed";
  readonly reason: string | null;
  /** Updates of the task up to this number are sent, or given up. */
  readonly afterN: number;
  /** How many attempts the next update had. */
  readonly attempts: number;
  /** Updates in a row whose attempts were used up. */
  readonly givenUp: number;
  /** When it is due; null: with the next change of the task. */
  readonly nextAtMs: number | null;
  /** Since when the outcome of an attempt is unknown: set before each request. */
  readonly sentAtMs: number | null;
  readonly createdAtMs: number;
  /** 0 is new. */
  readonly version: number;
}

export type TaskPushKey = Pick<TaskPushConfig, "tenant" | "taskId" | "id">;

/** An update of the task is to be pushed. */
export interface DueTaskPush {
  readonly taskId: string;
  readonly atMs: number;
}

/** `commit` changes them: `taskPushes`, `duePushes`, `forgottenTaskPushes`. */
export interface TaskPushStore {
  get(tenant: string, taskId: string, id: string): Promise<TaskPushConfig | undefined>;
  /**
   * All of one task, by their ids. Each of its parties has at most `LIMITS.pushConfigsOfTaskMax`; they are removed
   * with their task.
   */
  ofTask(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]>;
  due(nowMs: number, share: TaskPushShare): Promise<DueTaskPushes>;
}

/** A fair share of each tenant, so that none waits behind another. */
export interface TaskPushShare {
  /** Of one owner, in one tenant. */
  readonly ofOwner: number;
  /** Of these, for one receiver: the origin of the URL. */
  readonly ofReceiver: number;
}

export interface DueTaskPushes {
  /** Active ones that are due: the share of every owner, its longest due first. */
  readonly due: readonly TaskPushConfig[];
  /** The next due time after now; Infinity: none. */
  readonly nextAtMs: number;
}
