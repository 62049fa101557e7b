import type { DatabaseSync } from "node:sqlite";
import { taskTopic } from "../../core/ports/change-feed.ts";
import type {
  LastTaskUpdatesQuery,
  TaskStep,
  TaskUpdate,
  TaskUpdatesPage,
  TaskUpdatesQuery,
} from "../../core/ports/tasks.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";

const INSERT =
  "insert into task_update (tenant, task_id, n, at_ms, kind, step_json) values (?, ?, ?, ?, ?, ?)";
const AFTER = `
  select n, at_ms, step_json from task_update
  where tenant = ?1 and task_id = ?2 and n > ?3 and (?4 or kind <> 'artifact') order by n limit ?5`;
const LAST = `
  select n, at_ms, step_json from task_update
  where tenant = ?1 and task_id = ?2 and n <= ?3 and kind <> 'artifact' and (not ?4 or kind = 'status')
  order by n desc limit ?5`;
const FORGET = "delete from task_update where tenant = ? and task_id = ?";

/** What those who follow tasks are shown, step by step. */
export class TaskUpdates {
  readonly #ledger: Ledger;
  readonly #insert: Statement;
  readonly #after: Statement;
  readonly #last: Statement;
  readonly #forget: Statement;

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#insert = prepare(database, INSERT);
    this.#after = prepare(database, AFTER);
    this.#last = prepare(database, LAST);
    this.#forget = prepare(database, FORGET);
  }

  updates(query: TaskUpdatesQuery): TaskUpdatesPage {
    const { tenant, taskId, afterN, withArtifacts, limit } = query;
    return pageOf(this.#after.iterate(tenant, taskId, afterN, withArtifacts ? 1 : 0, limit + 1), query);
  }

  lastUpdates(query: LastTaskUpdatesQuery): TaskUpdatesPage {
    const { tenant, taskId, untilN, statusOnly, limit } = query;
    return pageOf(this.#last.iterate(tenant, taskId, untilN, statusOnly ? 1 : 0, limit + 1), query);
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

/** So many rows and so many bytes of them, though never none. */
function pageOf(
  rows: Iterable<Row>,
  { tenant, taskId, limit, bytesMax }: Pick<TaskUpdatesQuery, "tenant" | "taskId" | "limit" | "bytesMax">,
): TaskUpdatesPage {
  const updates: TaskUpdate[] = [];
  let bytes = 0;
  for (const [n, atMs, json] of rows) {
    bytes += String(json).length;
    if (updates.length === limit || (bytes > bytesMax && updates.length > 0)) {
      return { updates, hasMore: true };
    }
    const step = JSON.parse(String(json)) as TaskStep;
    updates.push({ tenant, taskId, n: Number(n), atMs: Number(atMs), step });
  }
  return { updates, hasMore: false };
}
