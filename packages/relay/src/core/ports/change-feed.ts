/** What a reader can wait for. */
export type Topic =
  | `mailbox:${string}:${string}`
  | `task:${string}:${string}`
  | `journal:${string}`
  | typeof PUSH_ENDPOINTS_TOPIC
  | typeof REMOTE_TASKS_TOPIC
  | typeof TASK_PUSHES_TOPIC;

/** Something about where agents are called has changed, in any tenant. */
export const PUSH_ENDPOINTS_TOPIC = "push-endpoints";

/** There is, or will be, something to tell where an A2A caller wants to be told of a task, in any tenant. */
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
 * Wakes a waiting reader to poll again; it carries no facts itself. In one process it is
 * memory; over PostgreSQL it is LISTEN/NOTIFY.
 */
export interface ChangeFeed {
  /**
   * Start watching *before* reading, so that what is committed between the read and the wait is not missed.
   * `resource_exhausted` when too many readers wait.
   */
  watch(topic: Topic, options?: WatchOptions): Watch;
}

export interface WatchOptions {
  /** For the relay itself: never refused, and not counted against the limit of readers. */
  readonly isOwn?: boolean;
}

export interface Watch extends Disposable {
  /**
   * True once something changed since the last call (or since `watch`); false when the time is over, the
   * signal is aborted, or the store closes.
   */
  changed(options: {
    /** Infinity waits without a time. */
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<boolean>;
}
