/** What a reader can wait for. */
export type Topic = `mailbox:${string}:${string}` | `journal:${string}`;

export function mailboxTopic(tenant: string, agentId: string): Topic {
  return `mailbox:${tenant}:${agentId}`;
}

export function journalTopic(tenant: string): Topic {
  return `journal:${tenant}`;
}

/**
 * Tells a waiting reader that it is worth looking again; it carries no facts itself. In one process it is
 * memory; over PostgreSQL it is LISTEN/NOTIFY.
 */
export interface ChangeFeed {
  /**
   * Start watching *before* reading, so that what is committed between the read and the wait is not missed.
   * `resource_exhausted` when too many readers wait.
   */
  watch(topic: Topic): Watch;
}

export interface Watch extends Disposable {
  /**
   * True once something changed since the last call (or since `watch`); false when the time is over, the
   * signal is aborted, or the store closes.
   */
  changed(options: {
    readonly timeoutMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<boolean>;
}
