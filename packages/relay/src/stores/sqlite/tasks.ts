import type { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import { type AgentId, type Artifact, isTerminal } from "@a2a-relay/protocol";
import { beginnerOf } from "../../core/rules/own-thread.ts";
import type {
  ArtifactRecord,
  AskedTasksPage,
  AskedTasksQuery,
  TaskFilter,
  TaskRecord,
  WholeTask,
} from "../../core/ports/tasks.ts";
import { ClashError } from "./clash.ts";
import { prepare, type Statement } from "./database.ts";
import { oneOf, UNFINISHED_STATES } from "./index-conditions.ts";
import { artifactFromRow, TASK_COLUMNS, taskFromRow, threadColumn } from "./rows.ts";

/** Tasks looked at between two turns of the event loop, so that a rare filter holds nobody up. */
const WALK_ROWS = 2_000;
/** Tasks that one answer names for a client id. */
const NAMED_TASKS_MAX = 100;
/** Behind every id. */
const LAST_ID = "\u{10ffff}";

const SELECT = `select ${TASK_COLUMNS} from task where tenant = ? and id = ?`;
const ARTIFACTS = "select json from artifact where tenant = ? and task_id = ? order by ordinal";
const COUNT_ARTIFACTS = `
  select task_id, count(*) from artifact
  where tenant = ? and task_id in (select value from json_each(?)) group by task_id`;
const UNFINISHED = oneOf("state", UNFINISHED_STATES);
const OVERDUE = `
  select ${TASK_COLUMNS} from task indexed by task_deadline
  where deadline_ms is not null and deadline_ms <= ?
    and ${UNFINISHED}
  order by deadline_ms limit ?`;

const FILTER = `id > ?2 and id <= ?3 and (?4 is null or state = ?4)
    and (?5 is null or requester = ?5 or assignee = ?5)
    and (?6 is null or thread_id = ?6 or (thread_id = '' and message_id = ?9))
    and (?7 is null or parent_id = ?7)
  order by id limit ?8`;
const OF_PARENT = `
  select ${TASK_COLUMNS} from task indexed by task_parent where tenant = ?1 and parent_id = ?7 and ${FILTER}`;
const OF_THREAD = `
  select ${TASK_COLUMNS} from task indexed by task_thread
  where tenant = ?1 and thread_id = ?6 and thread_id <> '' and ${FILTER}`;
// A task goes with the message that asks for it, so it is found by that message for as long as it is there.
const BEGUN_WITH_THREAD = `
  select ${TASK_COLUMNS} from task
  where tenant = ?1 and id = (select task_id from message where tenant = ?1 and id = ?9) and thread_id = ''
    and ${FILTER}`;
const STRETCH = `select ${TASK_COLUMNS} from task where tenant = ?1 and ${FILTER}`;
const STRETCH_END = "select id from task where tenant = ? and id > ? order by id limit 1 offset ?";
const UNFINISHED_STRETCH = `
  select ${TASK_COLUMNS} from task indexed by task_unfinished where tenant = ?1 and ${UNFINISHED} and ${FILTER}`;
const UNFINISHED_STRETCH_END = `
  select id from task indexed by task_unfinished where tenant = ? and ${UNFINISHED} and id > ?
  order by id limit 1 offset ?`;
// Few have one client id; the limit is for whoever shares one with thousands.
const WITH_CLIENT_ID = `
  select ${TASK_COLUMNS} from task indexed by task_client_id
  where tenant = ?1 and client_id is not null and client_id = ?3
    and (?2 is null or requester = ?2 or assignee = ?2)
  order by id desc limit ${NAMED_TASKS_MAX}`;
const UNFINISHED_WITH_RESULT_KEY = `
  select ${TASK_COLUMNS} from task indexed by task_result_key
  where tenant = ? and result_key is not null and result_key = ? and ${UNFINISHED} order by id limit 1`;

const ASKED = `
  from task indexed by task_asked_of
  where tenant = ?1 and asked_of is not null and asked_of = ?2 and requester = ?3 and updated_at_ms >= ?4
    and plain = 0 and (?5 is null or state = ?5) and created_at_ms >= ?8
    and (?6 is null or thread_id = ?6 or (thread_id = '' and message_id = ?7))`;
const ASKED_PAGE = `
  select ${TASK_COLUMNS} ${ASKED} and (updated_at_ms, id) < (?9, ?10)
  order by updated_at_ms desc, id desc limit ?11`;
const COUNT_ASKED = `select count(*) ${ASKED}`;

const INSERT = `
  insert into task (${TASK_COLUMNS})
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) on conflict do nothing`;
// Of a task that was only asked for, most is still to come: to give it value by value would cost as much as the rest.
const INSERT_NEW = `
  insert into task (${TASK_COLUMNS})
  values (?1, ?2, ?3, ?4, 'submitted', ?5, ?6, ?7, ?8, ?9, ?10, ?11, null, null, null, null, '[]', null, ?12, 0, 0, 0,
    ?13, ?13, 1)
  on conflict do nothing`;
const UPDATE = `
  update task set requester = ?, assignee = ?, state = ?, thread_id = ?, message_id = ?, subject = ?,
    client_id = ?, result_key = ?, parent_id = ?, deadline_ms = ?, status_text = ?, result_status = ?,
    result_message_id = ?, result_digest = ?, handoffs_json = ?, first_message_id = ?, asked_of = ?,
    plain = ?, update_count = ?, update_bytes = ?, created_at_ms = ?, updated_at_ms = ?, version = version + 1
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
  readonly #countArtifacts: Statement;
  readonly #overdue: Statement;
  readonly #ofParent: Statement;
  readonly #ofThread: Statement;
  readonly #begunWithThread: Statement;
  readonly #stretch: Statement;
  readonly #stretchEnd: Statement;
  readonly #unfinishedStretch: Statement;
  readonly #unfinishedStretchEnd: Statement;
  readonly #withClientId: Statement;
  readonly #unfinishedWithResultKey: Statement;
  readonly #askedPage: Statement;
  readonly #countAsked: Statement;
  readonly #insert: Statement;
  readonly #insertNew: Statement;
  readonly #update: Statement;
  readonly #putArtifact: Statement;

  constructor(database: DatabaseSync) {
    this.#select = prepare(database, SELECT);
    this.#artifacts = prepare(database, ARTIFACTS);
    this.#countArtifacts = prepare(database, COUNT_ARTIFACTS);
    this.#overdue = prepare(database, OVERDUE);
    this.#ofParent = prepare(database, OF_PARENT);
    this.#ofThread = prepare(database, OF_THREAD);
    this.#begunWithThread = prepare(database, BEGUN_WITH_THREAD);
    this.#stretch = prepare(database, STRETCH);
    this.#stretchEnd = prepare(database, STRETCH_END);
    this.#unfinishedStretch = prepare(database, UNFINISHED_STRETCH);
    this.#unfinishedStretchEnd = prepare(database, UNFINISHED_STRETCH_END);
    this.#withClientId = prepare(database, WITH_CLIENT_ID);
    this.#unfinishedWithResultKey = prepare(database, UNFINISHED_WITH_RESULT_KEY);
    this.#askedPage = prepare(database, ASKED_PAGE);
    this.#countAsked = prepare(database, COUNT_ASKED);
    this.#insert = prepare(database, INSERT);
    this.#insertNew = prepare(database, INSERT_NEW);
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

  taskWithArtifacts(tenant: string, id: string): WholeTask | undefined {
    const task = this.task(tenant, id);
    return task === undefined ? undefined : { task, artifacts: this.artifacts(tenant, id) };
  }

  countArtifacts(tenant: string, taskIds: readonly string[]): ReadonlyMap<string, number> {
    const rows = this.#countArtifacts.all(tenant, JSON.stringify(taskIds));
    return new Map(rows.map((row) => [row[0] as string, row[1] as number]));
  }

  overdueTasks(nowMs: number, limit: number): readonly TaskRecord[] {
    return this.#overdue.all(nowMs, limit).map((row) => taskFromRow(row));
  }

  tasksWithClientId(tenant: string, agentId: AgentId | undefined, clientId: string): readonly TaskRecord[] {
    return this.#withClientId.all(tenant, agentId ?? null, clientId).map((row) => taskFromRow(row));
  }

  unfinishedWithResultKey(tenant: string, resultKey: string): TaskRecord | undefined {
    const row = this.#unfinishedWithResultKey.get(tenant, resultKey);
    return row === undefined ? undefined : taskFromRow(row);
  }

  /**
   * Looks only at the children or the thread that are asked for, else walks the tasks stretch by stretch.
   * There is no index by agent: it would make every request pay a quarter more.
   */
  async tasks(filter: TaskFilter): Promise<readonly TaskRecord[]> {
    if (filter.parentId !== undefined) return find(this.#ofParent, filter);
    if (filter.threadId !== undefined) {
      const found = [...find(this.#begunWithThread, filter), ...find(this.#ofThread, filter)];
      return found.toSorted(byId).slice(0, filter.limit);
    }
    const isUnfinished = filter.state !== undefined && !isTerminal(filter.state);
    const stretch = isUnfinished ? this.#unfinishedStretch : this.#stretch;
    const stretchEnd = isUnfinished ? this.#unfinishedStretchEnd : this.#stretchEnd;
    const found: TaskRecord[] = [];
    let { afterId } = filter;
    for (;;) {
      const endId = stretchEnd.get(filter.tenant, afterId, WALK_ROWS - 1)?.[0] as string | undefined;
      const limit = filter.limit - found.length;
      found.push(...find(stretch, { ...filter, afterId, limit }, endId));
      if (endId === undefined || found.length >= filter.limit) return found;
      afterId = endId;
      await setImmediate();
    }
  }

  askedTasks(query: AskedTasksQuery): AskedTasksPage {
    const { tenant, askedOf, requester, sinceMs, createdSinceMs, before, limit } = query;
    const { state = null, threadId = null } = query;
    const beginner = beginnerIn(threadId);
    const filter = [tenant, askedOf, requester, sinceMs, state, threadId, beginner, createdSinceMs] as const;
    const { updatedAtMs, id } = before ?? { updatedAtMs: Number.MAX_SAFE_INTEGER, id: LAST_ID };
    const rows = this.#askedPage.all(...filter, updatedAtMs, id, limit + 1);
    const tasks = rows.slice(0, limit).map((row) => taskFromRow(row));
    const total = Number(this.#countAsked.get(...filter)?.[0]);
    return { tasks, hasMore: rows.length > limit, total };
  }

  /** Inside a commit. */
  put(task: TaskRecord): void {
    const { tenant, id } = task;
    if (task.version !== 0) {
      const { changes } = this.#update.run(...taskValues(task), tenant, id, task.version);
      if (changes === 0) throw new ClashError("task");
      return;
    }
    const { changes } = isNew(task)
      ? this.#insertNew.run(...newTaskValues(task))
      : this.#insert.run(tenant, id, ...taskValues(task));
    if (changes !== 0) return;
    throw new ClashError(this.#select.get(tenant, id) === undefined ? "task_client_id" : "task");
  }

  /** Inside a commit. */
  putArtifact({ tenant, taskId, artifact }: ArtifactRecord): void {
    this.#putArtifact.run(tenant, taskId, artifact.artifactId, JSON.stringify(artifact));
  }
}

function find(statement: Statement, filter: TaskFilter, endId = LAST_ID): readonly TaskRecord[] {
  const { tenant, afterId, state = null, agentId = null, threadId = null, parentId = null, limit } = filter;
  return statement
    .all(tenant, afterId, endId, state, agentId, threadId, parentId, limit, beginnerIn(threadId))
    .map((row) => taskFromRow(row));
}

function beginnerIn(threadId: string | null): string | null {
  return threadId === null ? null : (beginnerOf(threadId) ?? null);
}

/** As the database orders them. */
function byId(one: TaskRecord, other: TaskRecord): number {
  return one.id < other.id ? -1 : 1;
}

/** Whether it was asked for, and no more. */
function isNew(task: TaskRecord): boolean {
  return (
    task.state === "submitted" &&
    task.statusText === null &&
    task.resultStatus === null &&
    task.resultMessageId === null &&
    task.resultDigest === null &&
    task.handoffs.length === 0 &&
    task.firstMessageId === null &&
    !task.isPlain &&
    task.updateCount === 0 &&
    task.updateBytes === 0 &&
    task.updatedAtMs === task.createdAtMs
  );
}

/** What was asked for, in the order of its columns. */
function askedValues(task: TaskRecord): (string | number | null)[] {
  return [
    threadColumn(task.threadId, task.messageId),
    task.messageId,
    task.subject,
    task.clientId,
    task.resultKey,
    task.parentId,
    task.deadlineMs,
  ];
}

function newTaskValues(task: TaskRecord): (string | number | null)[] {
  return [
    task.tenant,
    task.id,
    task.requester,
    task.assignee,
    ...askedValues(task),
    task.askedOf,
    task.createdAtMs,
  ];
}

function taskValues(task: TaskRecord): (string | number | null)[] {
  return [
    task.requester,
    task.assignee,
    task.state,
    ...askedValues(task),
    task.statusText,
    task.resultStatus,
    task.resultMessageId,
    task.resultDigest,
    JSON.stringify(task.handoffs),
    task.firstMessageId,
    task.askedOf,
    task.isPlain ? 1 : 0,
    task.updateCount,
    task.updateBytes,
    task.createdAtMs,
    task.updatedAtMs,
  ];
}
