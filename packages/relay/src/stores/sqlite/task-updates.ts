import type { DatabaseSync } from "node:sqlite";
import { taskTopic } from "../../core/environment/change-feed.ts";
import type { TaskUpdatesPage, TaskUpdatesQuery } from "../../core/tasks/task-store.ts";
import type { TaskStep, TaskUpdate } from "../../core/tasks/task-update.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

const INSERT =
  "insert into task_update (tenant, task_id, n, at_ms, kind, step_json) values (?, ?, ?, ?, ?, ?)";
const AFTER = `
  select n, at_ms, step_json from task_update
  where tenant = ?1 and task_id = ?2 and n > ?3 and (?4 or kind <> 'artifact') order by n limit ?5`;
const FORGET = "delete from task_update where tenant = ? and task_id = ?";

/** What those who follow tasks are shown, step by step. */
export class TaskUpdates {
  readonly #ledger: Ledger;
  readonly #insert: Statement;
  readonly #after: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#insert = prepare(database, INSERT);
    this.#after = prepare(database, AFTER);
    this.#forget = prepare(database, FORGET);
  }

  updates({ tenant, taskId, afterN, withArtifacts, limit, bytesMax }: TaskUpdatesQuery): TaskUpdatesPage {
    const updates: TaskUpdate[] = [];
    let bytes = 0;
    for (const [n, atMs, json] of this.#after.iterate(
      tenant,
      taskId,
      afterN,
      withArtifacts ? 1 : 0,
      limit + 1,
    )) {
      bytes += String(json).length;
      if (updates.length === limit || (bytes > bytesMax && updates.length > 0)) {
        return { updates, hasMore: true };
      }
      const step = JSON.parse(String(json)) as TaskStep;
      updates.push({ tenant, taskId, n: Number(n), atMs: Number(atMs), step });
    }
    return { updates, hasMore: false };
  }

  /** Inside a commit. */
  add({ tenant, taskId, n, atMs, step }: TaskUpdate): void {
    this.#insert.run(tenant, taskId, n, atMs, step.kind, JSON.stringify(step));
    this.#ledger.wake(taskTopic(tenant, taskId));
  }

  /** Inside a commit. */
  forget(tenant: string, taskId: string): void {
    this.#forget.run(tenant, taskId);
  }
}
