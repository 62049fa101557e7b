import type { A2aVersion, AgentId } from "@a2a-relay/protocol";

/** Where an A2A caller wants to be told of one task, and how far it was told. */
export interface TaskPushConfig {
  readonly tenant: string;
  readonly taskId: string;
  /** Unique within its task. */
  readonly id: string;
  /** Who made it; `GUEST` stands for operators. It sees its secrets, and is told only what it may see. */
  readonly owner: AgentId;
  readonly url: string;
  readonly token: string | null;
  readonly scheme: string | null;
  readonly credentials: string | null;
  /** What its receiver reads: that of the call that made it. */
  readonly dialect: A2aVersion;
  /** `ended`: there is nothing more to tell, or nobody who wants it. `failed`: it was given up. */
  readonly state: "active" | "ended" | "failed";
  readonly reason: string | null;
  /** Updates of the task up to this number were sent, or given up. */
  readonly afterN: number;
  /** Of the update behind it: how many attempts there were. */
  readonly attempts: number;
  /** Updates in a row whose attempts were used up. */
  readonly givenUp: number;
  /** When it is worth looking at it; null: when something happens to the task. */
  readonly nextAtMs: number | null;
  readonly createdAtMs: number;
  /** 0 is new. */
  readonly version: number;
}

export type TaskPushKey = Pick<TaskPushConfig, "tenant" | "taskId" | "id">;
