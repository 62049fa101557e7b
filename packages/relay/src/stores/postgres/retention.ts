import { type Artifact, LIMITS, SETTLED_DELIVERY_STATES, TERMINAL_TASK_STATES } from "@a2a-relay/protocol";
import type {
  ChainHead,
  EventDraft,
  EventRecord,
  ExpiryTimes,
  RetentionStore,
  RetirableMessage,
} from "../../core/ports/journal.ts";
import { archivedDelivery } from "../../core/rules/delivery-state.ts";
import type { Keys } from "./access.ts";
import type { CommitQueue } from "./commit-queue.ts";
import type { Database, Transaction } from "./database.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Journal } from "./journal.ts";
import type { Messages } from "./messages.ts";
import { Partitions } from "./partitions.ts";
import type { Engine } from "./postgres-relay-store.ts";
import type { Tasks } from "./tasks.ts";

const SCAN_ROWS = 2_000;
/** Expired rows of one table that one commit removes. */
const REMOVED_ROWS_MAX = 1_000;

const SETTLED = oneOf(SETTLED_DELIVERY_STATES);
const TERMINAL = oneOf(TERMINAL_TASK_STATES);

const SQL = {
  // A message to an agent without a mailbox has no delivery; its age counts from its acceptance.
  scan: `
    select m.ref, m.id, m.accepted_at_ms,
      exists (select 1 from message_key k where k.tenant = m.tenant and k.id = m.id)
        and (t.state is null or t.state in ${TERMINAL})
        and (d.state is null or (d.state in ${SETTLED} and d.settled_at_ms < $4)) as is_retirable
    from (
      select ref, tenant, id, task_id, accepted_at_ms from message
      where tenant = $1 and ref > $2 order by ref limit $3) m
    left join any_delivery d on d.tenant = m.tenant and d.message_id = m.id and d.ref = m.ref
    left join task t on t.tenant = m.tenant and t.id = m.task_id
    order by m.ref`,
  // The ref after which the tenant's scan continues: it has checked the messages before and they must stay.
  progress: "select scanned_ref from retention_progress where tenant = $1",
  saveProgress: `
    insert into retention_progress (tenant, scanned_ref) values ($1, $2)
    on conflict (tenant) do update set scanned_ref = excluded.scanned_ref`,
  artifacts: `
    select task_id, json from artifact where tenant = $1 and task_id = any ($2) order by task_id, ordinal, artifact_id`,

  // The message and its settled delivery go with their partition. A message with an open delivery stays.
  removeMessages: `
    with removed as (
      delete from message_key k where k.tenant = $1 and k.id = any ($2)
        and not exists (select 1 from delivery d where d.tenant = k.tenant and d.message_id = k.id)
      returning k.tenant, k.id, k.ref)
    select m.id, m.task_id from removed r join message m on m.tenant = r.tenant and m.ref = r.ref`,
  removeOfMessages: `
    with attempts as (
      delete from push_attempt where tenant = $1 and message_id = any ($2)
    ), pushes as (
      delete from push where tenant = $1 and message_id = any ($2)
    )
    update send_key set gone_at_ms = $3 where tenant = $1 and message_id = any ($2)`,
  removeOfTasks: `
    with pushes as (delete from task_push_config where tenant = $1 and task_id = any ($2))
    delete from remote_task where tenant = $1 and task_id = any ($2)`,
  removeSendKeys: `
    delete from send_key
    where ctid = any (array(select ctid from send_key where gone_at_ms < $1 limit $2))`,
};

/** The parts that know what is archived. */
export interface RetiredParts {
  readonly deliveries: Deliveries;
  readonly journal: Journal;
  readonly keys: Keys;
  readonly messages: Messages;
  readonly tasks: Tasks;
}

interface ScanResult {
  readonly found: readonly string[];
  readonly firstFoundRef: number;
  readonly lastRef: number;
  readonly ended: boolean;
}

/** Finds and removes old finished messages. It scans them by age, so that a send pays for no index. */
export class RetentionRows implements RetentionStore {
  readonly #database: Database;
  readonly #commits: CommitQueue;
  readonly #parts: RetiredParts;
  readonly #partitions: Partitions;

  constructor(engine: Engine, parts: RetiredParts) {
    this.#database = engine.database;
    this.#commits = engine.commits;
    this.#parts = parts;
    this.#partitions = new Partitions(engine.database);
  }

  async messages(
    tenant: string,
    settledBeforeMs: number,
    limit: number,
  ): Promise<readonly RetirableMessage[]> {
    const progress = await this.#database.ofTenant(tenant).row(SQL.progress, [tenant]);
    const start = (progress?.["scanned_ref"] ?? 0) as number;
    let result = await this.#scan(tenant, start, settledBeforeMs, limit);
    if (result.ended && result.found.length === 0 && start > 0) {
      result = await this.#scan(tenant, 0, settledBeforeMs, limit);
    }
    const next = nextStart(result);
    if (next !== start) {
      await this.#commits.submit(tenant, (transaction) => transaction.run(SQL.saveProgress, [tenant, next]));
    }
    return this.archiveLines(tenant, result.found);
  }

  async archiveLines(tenant: string, messageIds: readonly string[]): Promise<readonly RetirableMessage[]> {
    if (messageIds.length === 0) return [];
    const { deliveries, messages, tasks } = this.#parts;
    const [found, delivered] = await Promise.all([
      messages.get(tenant, messageIds),
      deliveries.get(tenant, messageIds),
    ]);
    const taskIds = new Set(found.flatMap((message) => message?.taskId ?? []));
    const [asked, artifacts] = await Promise.all([
      tasks.get(tenant, [...taskIds]),
      this.#artifacts(tenant, [...taskIds]),
    ]);
    const begun = new Map(asked.flatMap((task) => (task === undefined ? [] : [[task.messageId, task]])));
    return messageIds.flatMap((messageId, index) => {
      const [message, delivery, task] = [found[index], delivered[index], begun.get(messageId)];
      if (message === undefined) return [];
      const line = {
        tenant,
        message: JSON.parse(message.json) as unknown,
        ...(delivery === undefined ? {} : { delivery: archivedDelivery(delivery) }),
        ...(task === undefined ? {} : { task, artifacts: artifacts.get(task.id) ?? [] }),
      };
      return [{ messageId, line }];
    });
  }

  async retireMessages(
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
    event?: EventDraft,
  ): Promise<void> {
    await this.#commits.submit(tenant, async (transaction) => {
      await this.#retire(transaction, tenant, messageIds, nowMs);
      if (event !== undefined) await this.#parts.journal.append(transaction, [{ tenant, events: [event] }]);
    });
  }

  events(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]> {
    return this.#parts.journal.oldest(tenant, beforeMs, limit);
  }

  async retireEvents(tenant: string, anchor: ChainHead): Promise<void> {
    await this.#commits.submit(tenant, (transaction) =>
      this.#parts.journal.removeUntil(transaction, tenant, anchor),
    );
  }

  async forgetExpired({ nowMs, sendKeysBeforeMs, cachedResultsMax }: ExpiryTimes): Promise<number> {
    const { keys } = this.#parts;
    const { tasks } = this.#parts;
    const removals: readonly ((transaction: Transaction) => Promise<number>)[] = [
      (transaction) => transaction.run(SQL.removeSendKeys, [sendKeysBeforeMs, REMOVED_ROWS_MAX]),
      (transaction) => keys.removeNonces(transaction, nowMs, REMOVED_ROWS_MAX),
      (transaction) => keys.clearSecrets(transaction, nowMs, REMOVED_ROWS_MAX),
      (transaction) => tasks.removeResults(transaction, nowMs, cachedResultsMax, REMOVED_ROWS_MAX),
    ];
    await this.#partitions.add();
    let total = await this.#partitions.dropEmpty();
    for (const remove of removals) {
      for (let removed = REMOVED_ROWS_MAX; removed >= REMOVED_ROWS_MAX;) {
        removed = await this.#commits.submit(undefined, remove);
        total += removed;
      }
    }
    return total;
  }

  async #retire(
    transaction: Transaction,
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
  ): Promise<void> {
    const rows = await transaction.rows(SQL.removeMessages, [tenant, messageIds]);
    const ids = rows.map((row) => row["id"] as string);
    if (ids.length === 0) return;
    await transaction.run(SQL.removeOfMessages, [tenant, ids, nowMs]);
    const begun = rows.flatMap(({ id, task_id: taskId }) =>
      taskId === null ? [] : [{ id: taskId as string, messageId: id as string }],
    );
    const taskIds = await this.#parts.tasks.removeBegunBy(transaction, tenant, begun);
    if (taskIds.length > 0) await transaction.run(SQL.removeOfTasks, [tenant, taskIds]);
  }

  async #scan(tenant: string, startRef: number, settledBeforeMs: number, limit: number): Promise<ScanResult> {
    const found: string[] = [];
    let firstFoundRef = 0;
    let lastRef = startRef;
    for (let rowsLeft = LIMITS.scanRowsMax; rowsLeft > 0; rowsLeft -= SCAN_ROWS) {
      const rows = await this.#database
        .ofTenant(tenant)
        .rows(SQL.scan, [tenant, lastRef, SCAN_ROWS, settledBeforeMs]);
      for (const row of rows) {
        // A message that was accepted after the time cannot have been settled before it.
        if (Number(row["accepted_at_ms"]) >= settledBeforeMs) {
          return { found, firstFoundRef, lastRef, ended: true };
        }
        lastRef = row["ref"] as number;
        if (row["is_retirable"] !== true) continue;
        if (found.length === 0) firstFoundRef = lastRef;
        found.push(row["id"] as string);
        if (found.length >= limit) return { found, firstFoundRef, lastRef, ended: false };
      }
      if (rows.length < SCAN_ROWS) return { found, firstFoundRef, lastRef, ended: true };
    }
    return { found, firstFoundRef, lastRef, ended: false };
  }

  async #artifacts(
    tenant: string,
    taskIds: readonly string[],
  ): Promise<ReadonlyMap<string, readonly Artifact[]>> {
    const rows = await this.#database.ofTenant(tenant).rows(SQL.artifacts, [tenant, taskIds]);
    const byTask = Map.groupBy(rows, (row) => row["task_id"] as string);
    return new Map(
      [...byTask].map(([taskId, ofTask]) => [
        taskId,
        ofTask.map((row) => JSON.parse(row["json"] as string) as Artifact),
      ]),
    );
  }
}

/** In front of what was found, in case the caller does not retire it; at the beginning after the end. */
function nextStart(result: ScanResult): number {
  if (result.found.length > 0) return result.firstFoundRef - 1;
  return result.ended ? 0 : result.lastRef;
}

function oneOf(states: readonly string[]): string {
  return `(${states.map((state) => `'${state}'`).join(", ")})`;
}
