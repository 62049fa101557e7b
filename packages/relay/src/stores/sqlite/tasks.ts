import type { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { type Artifact, isTerminal } from "@a2a-relay/protocol";
import type { ArtifactRecord, TaskRecord } from "../../core/tasks/task-record.ts";
import type { TaskFilter } from "../../core/tasks/task-store.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import { artifactFromRow, TASK_COLUMNS, taskFromRow } from "./rows.ts";

/** Tasks looked at between two turns of the event loop, so that a rare filter holds nobody up. */
const WALK_ROWS = 500;

const SELECT = `select ${TASK_COLUMNS} from task where tenant = ? and id = ?`;
const ARTIFACTS = "select json from artifact where tenant = ? and task_id = ? order by ordinal";
const OVERDUE = `
  select ${TASK_COLUMNS} from task indexed by task_deadline
  where deadline_ms is not null and deadline_ms <= ?
    and state in ('submitted', 'working', 'input-required', 'auth-required')
  order by deadline_ms limit ?`;

const BY_PARENT = `
  select ${TASK_COLUMNS} from task where tenant = ?1 and parent_id = ?4 and id > ?2 order by id limit ?3`;
const BY_THREAD = `
  select ${TASK_COLUMNS} from task where tenant = ?1 and thread_id = ?4 and id > ?2 order by id limit ?3`;
const BY_AGENT = `
  select * from (select ${TASK_COLUMNS} from task
    where tenant = ?1 and requester = ?4 and id > ?2 order by id limit ?3)
  union all
  select * from (select ${TASK_COLUMNS} from task
    where tenant = ?1 and assignee = ?4 and requester <> ?4 and id > ?2 order by id limit ?3)
  order by id limit ?3`;
const UNFINISHED = `
  select ${TASK_COLUMNS} from task indexed by task_unfinished
  where tenant = ?1 and id > ?2 and state in ('submitted', 'working', 'input-required', 'auth-required')
  order by id limit ?3`;
const ALL = `select ${TASK_COLUMNS} from task where tenant = ?1 and id > ?2 order by id limit ?3`;

const INSERT = `
  insert into task (${TASK_COLUMNS})
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) on conflict do nothing`;
const UPDATE = `
  update task set requester = ?, assignee = ?, state = ?, thread_id = ?, message_id = ?, subject = ?,
    parent_id = ?, deadline_ms = ?, status_text = ?, result_status = ?, result_message_id = ?,
    result_digest = ?, handoffs_json = ?, created_at_ms = ?, updated_at_ms = ?, version = version + 1
  where tenant = ? and id = ? and version = ?`;
const PUT_ARTIFACT = `
  insert into artifact (tenant, task_id, artifact_id, ordinal, json)
  values (?1, ?2, ?3,
    (select coalesce(max(ordinal), 0) + 1 from artifact where tenant = ?1 and task_id = ?2), ?4)
  on conflict do update set json = excluded.json`;

/** The work that requests and handoffs ask for, and what came of it. */
export class Tasks {
  readonly #select: Statement;
  readonly #artifacts: Statement;
  readonly #overdue: Statement;
  readonly #byParent: Statement;
  readonly #byThread: Statement;
  readonly #byAgent: Statement;
  readonly #unfinished: Statement;
  readonly #all: Statement;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #putArtifact: Statement;

  constructor(database: DatabaseSync) {
    this.#select = prepare(database, SELECT);
    this.#artifacts = prepare(database, ARTIFACTS);
    this.#overdue = prepare(database, OVERDUE);
    this.#byParent = prepare(database, BY_PARENT);
    this.#byThread = prepare(database, BY_THREAD);
    this.#byAgent = prepare(database, BY_AGENT);
    this.#unfinished = prepare(database, UNFINISHED);
    this.#all = prepare(database, ALL);
    this.#insert = prepare(database, INSERT);
    this.#update = prepare(database, UPDATE);
    this.#putArtifact = prepare(database, PUT_ARTIFACT);
  }

  task(tenant: string, id: string): TaskRecord | undefined {
    const row = this.#select.get(tenant, id);
    return row === undefined ? undefined : taskFromRow(row);
  }

  artifacts(tenant: string, taskId: string): readonly Artifact[] {
    return this.#artifacts.all(tenant, taskId).map((row) => artifactFromRow(row));
  }

  overdueTasks(nowMs: number, limit: number): readonly TaskRecord[] {
    return this.#overdue.all(nowMs, limit).map((row) => taskFromRow(row));
  }

  /** Walks the narrowest index that fits and checks the rest of the filter on the way. */
  async tasks(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    const found: TaskRecord[] = [];
    let wanted = filter.limit;
    let afterId = filter.afterId;
    for (;;) {
      const rows = this.#walk(filter, afterId, wanted);
      for (const row of rows) {
        const task = taskFromRow(row);
        afterId = task.id;
        if (!matches(task, filter)) continue;
        found.push(task);
        if (found.length >= filter.limit) return found;
      }
      if (rows.length < wanted) return found;
      wanted = WALK_ROWS;
      await setImmediate();
    }
  }

  /** Inside a commit. */
  put(task: TaskRecord): void {
    const { tenant, id } = task;
    const values = taskValues(task);
    const { changes } =
      task.version === 0
        ? this.#insert.run(tenant, id, ...values)
        : this.#update.run(...values, tenant, id, task.version);
    if (changes === 0) throw new ClashError("task");
  }

  /** Inside a commit. */
  putArtifact({ tenant, taskId, artifact }: ArtifactRecord): void {
    this.#putArtifact.run(tenant, taskId, artifact.artifactId, JSON.stringify(artifact));
  }

  #walk(filter: TaskFilter, afterId: string, limit: number): readonly Row[] {
    const { tenant, parentId, threadId, agentId, state } = filter;
    if (parentId !== undefined) return this.#byParent.all(tenant, afterId, limit, parentId);
    if (threadId !== undefined) return this.#byThread.all(tenant, afterId, limit, threadId);
    if (agentId !== undefined) return this.#byAgent.all(tenant, afterId, limit, agentId);
    if (state !== undefined && !isTerminal(state)) return this.#unfinished.all(tenant, afterId, limit);
    return this.#all.all(tenant, afterId, limit);
  }
}

function taskValues(task: TaskRecord): (string | number | null)[] {
  return [
    task.requester,
    task.assignee,
    task.state,
    task.threadId,
    task.messageId,
    task.subject,
    task.parentId,
    task.deadlineMs,
    task.statusText,
    task.resultStatus,
    task.resultMessageId,
    task.resultDigest,
    JSON.stringify(task.handoffs),
    task.createdAtMs,
    task.updatedAtMs,
  ];
}

function matches(task: TaskRecord, filter: TaskFilter): boolean {
  const { state, agentId, threadId, parentId } = filter;
  return (
    (state === undefined || task.state === state) &&
    (agentId === undefined || task.requester === agentId || task.assignee === agentId) &&
    (threadId === undefined || task.threadId === threadId) &&
    (parentId === undefined || task.parentId === parentId)
  );
}
