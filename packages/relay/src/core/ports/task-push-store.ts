import type { TaskPushConfig } from "./task-push-record.ts";

/**
 * Changed through `commit` like everything else: `taskPushes`, `forgottenTaskPushes`. Whatever is added to
 * `taskUpdates` makes the active configurations of its task due in the same commit, and gives each a new version: who
 * has read one of them and found nothing to send is refused, and looks again.
 */
export interface TaskPushStore {
  taskPush(tenant: string, taskId: string, id: string): Promise<TaskPushConfig | undefined>;
  /**
   * All of one task, by their ids. Each of its parties has at most `LIMITS.pushConfigsOfTaskMax`; they go with their
   * task.
   */
  taskPushes(tenant: string, taskId: string): Promise<readonly TaskPushConfig[]>;
  dueTaskPushes(nowMs: number, share: TaskPushShare): Promise<DueTaskPushes>;
}

/** What one of many gets, so that nobody's wait behind another's. */
export interface TaskPushShare {
  /** Of one owner, in one tenant. */
  readonly ofOwner: number;
  /** Of these, for one receiver: the origin of the URL. */
  readonly ofReceiver: number;
}

export interface DueTaskPushes {
  /** Active ones whose time has come: of every owner its share, its longest due first. */
  readonly due: readonly TaskPushConfig[];
  /** When the next time comes that has not come yet; infinite: never. */
  readonly nextAtMs: number;
}
