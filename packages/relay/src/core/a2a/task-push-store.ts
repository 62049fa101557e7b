import type { TaskPushConfig } from "./task-push-record.ts";

/**
 * Changed through `commit` like everything else: `taskPushes`, `forgottenTaskPushes`. Whatever is added to
 * `taskUpdates` makes the active configurations of its task due in the same commit, and gives each a new version: who
 * has read one of them and found nothing to send is refused, and looks again.
 */
export interface TaskPushStore {
  taskPush(tenant: string, taskId: string, id: string): Promise<TaskPushConfig | undefined>;
  /** All of one task, by their ids. There are at most `LIMITS.pushConfigsOfTaskMax`; they go with their task. */
  taskPushes(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]>;
  /** Active ones whose time has come, of all tenants and at most `limit` of each; its longest due first. */
  dueTaskPushes(nowMs: number, limit: number): Promise<readonly TaskPushConfig[]>;
}
