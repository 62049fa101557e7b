/** A reader watches one of these. */
export type Topic =
  | `mailbox:${string}:${string}`
  | `task:${string}:${string}`
  | `journal:${string}`
  | typeof PUSH_ENDPOINTS_TOPIC
  | typeof REMOTE_TASKS_TOPIC
  | typeof TASK_PUSHES_TOPIC;

/** A push endpoint has changed, in any tenant. */
export const PUSH_ENDPOINTS_TOPIC = "push-endpoints";

/** A task push is due now or later, in any tenant. */
export const TASK_PUSHES_TOPIC = "task-pushes";

/** A remote agent has answered in any tenant, and the answer is to be recorded. */
export const REMOTE_TASKS_TOPIC = "remote-tasks";

export function taskTopic(tenant: string, taskId: string): Topic {
  return `task:${tenant}:${taskId}`;
}

export function mailboxTopic(tenant: string, agentId: string): Topic {
  return `mailbox:${tenant}:${agentId}`;
}

export function journalTopic(tenant: string): Topic {
  return `journal:${tenant}`;
}

/**
 * Wakes a waiting reader to poll again, once or more; it carries no facts itself. In one process it is
 * memory; over PostgreSQL it is LISTEN/NOTIFY.
 */
export interface ChangeFeed {
  /**
   * Call it *before* reading, so that the watch sees a commit between the read and the wait. `resource_exhausted`
   * when too many readers watch.
   */
  watch(topic: Topic, options?: WatchOptions): Watch;
}

export interface WatchOptions {
  /** For the relay itself: never refused, and not counted against the limit of readers. */
  readonly isOwn?: boolean;
}

export interface Watch extends Disposable {
  /**
   * True once something changed since the last call (or since `watch`); false at the timeout, when the signal is
   * aborted, or when the store closes.
   */
  changed(options: {
    /** Infinity waits without a timeout. */
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<boolean>;
}
