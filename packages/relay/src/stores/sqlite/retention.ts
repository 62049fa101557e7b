import { setImmediate } from "node:timers/promises";
import { type DeliveryState, isSettled, isTerminal, LIMITS, type TaskState } from "@a2a-relay/protocol";
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
import type { CommitQueue, Engine } from "./commit-queue.ts";
import { prepareAll, type Row, type Statements } from "./database.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Journal } from "./journal.ts";
import type { Messages, SendKeyName } from "./messages.ts";
import type { Pushes } from "./pushes.ts";
import type { RemoteTasks } from "./remote-tasks.ts";
import type { TaskPushes } from "./task-pushes.ts";
import type { Tasks } from "./tasks.ts";

const SCAN_ROWS = 500;
/** Expired rows of one table that one commit removes. */
const REMOVED_ROWS_MAX = 1_000;

const SQL = {
  scan: `
    select m.ref, m.tenant, m.id, m.accepted_at_ms, d.state, d.settled_at_ms, t.state
    from message m left join delivery d on d.ref = m.ref
    left join task t on t.tenant = m.tenant and t.id = m.task_id
    where m.ref > ? order by m.ref limit ?`,
  // The ref after which the tenant's scan continues: it has checked the messages before and they must stay.
  progress: "select scanned_ref from retention_progress where tenant = ?",
  saveProgress: `
    insert into retention_progress (tenant, scanned_ref) values (?, ?)
    on conflict do update set scanned_ref = excluded.scanned_ref`,
  references: `
    select m.ref, m.task_id, m.send_keys_json, m.accepted_place, d.state
    from message m left join delivery d on d.ref = m.ref where m.tenant = ? and m.id = ?`,
  startKeyClock: `
    update send_key set gone_at_ms = ?
    where tenant = ? and sender = ? and recipient = ? and key = ? and message_id = ?`,
  removeKeys: `
    delete from send_key where (tenant, sender, recipient, key) in (
      select tenant, sender, recipient, key from send_key indexed by send_key_gone
      where gone_at_ms is not null and gone_at_ms < ? limit ?)`,
};

/** The parts that have rows to remove. */
export interface RetiredParts {
  readonly keys: Keys;
  readonly deliveries: Deliveries;
  readonly journal: Journal;
  readonly messages: Messages;
  readonly pushes: Pushes;
  readonly remoteTasks: RemoteTasks;
  readonly taskPushes: TaskPushes;
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
  readonly #commits: CommitQueue;
  readonly #parts: RetiredParts;
  readonly #sql: Statements<typeof SQL>;

  constructor({ database, commits }: Engine, parts: RetiredParts) {
    this.#commits = commits;
    this.#parts = parts;
    this.#sql = prepareAll(database, SQL);
  }

  async messages(
    tenant: string,
    settledBeforeMs: number,
    limit: number,
  ): Promise<readonly RetirableMessage[]> {
    const start = Number(this.#sql.progress.get(tenant)?.[0] ?? 0);
    let result = await this.#scan(tenant, start, settledBeforeMs, limit);
    if (result.ended && result.found.length === 0 && start > 0) {
      result = await this.#scan(tenant, 0, settledBeforeMs, limit);
    }
    const next = nextStart(result);
    if (next !== start) await this.#commits.submit(() => this.#sql.saveProgress.run(tenant, next));
    return this.archiveLines(tenant, result.found);
  }

  async archiveLines(tenant: string, messageIds: readonly string[]): Promise<readonly RetirableMessage[]> {
    return messageIds.flatMap((messageId) => {
      const line = this.#line(tenant, messageId);
      return line === undefined ? [] : [{ messageId, line }];
    });
  }

  async retireMessages(
    tenant: string,
    messageIds: readonly string[],
    nowMs: number,
    event?: EventDraft,
  ): Promise<void> {
    await this.#commits.submit(() => {
      for (const messageId of messageIds) this.#retire(tenant, messageId, nowMs);
      if (event !== undefined) this.#parts.journal.append(tenant, [event]);
    });
  }

  async events(tenant: string, beforeMs: number, limit: number): Promise<readonly EventRecord[]> {
    return this.#parts.journal.oldest(tenant, beforeMs, limit);
  }

  async retireEvents(tenant: string, anchor: ChainHead): Promise<void> {
    await this.#commits.submit(() => this.#parts.journal.removeUntil(tenant, anchor));
  }

  async forgetExpired({ nowMs, sendKeysBeforeMs, cachedResultsMax }: ExpiryTimes): Promise<number> {
    const { keys, tasks } = this.#parts;
    const removals = [
      () => this.#sql.removeKeys.run(sendKeysBeforeMs, REMOVED_ROWS_MAX),
      () => keys.removeNonces(nowMs, REMOVED_ROWS_MAX),
      () => keys.clearSecrets(nowMs, REMOVED_ROWS_MAX),
      () => tasks.removeResults(nowMs, cachedResultsMax, REMOVED_ROWS_MAX),
    ];
    let total = 0;
    for (const remove of removals) total += await this.#commits.submitUntilDone(REMOVED_ROWS_MAX, remove);
    return total;
  }

  /** A message whose delivery is open again stays. */
  #retire(tenant: string, messageId: string, nowMs: number): void {
    const { deliveries, journal, messages, pushes, remoteTasks, taskPushes, tasks } = this.#parts;
    const [ref, taskId, sendKeysJson, acceptanceKey, state] =
      this.#sql.references.get(tenant, messageId) ?? [];
    if (typeof ref !== "number" || (state !== null && !isSettled(state as DeliveryState))) return;
    if (typeof sendKeysJson === "string") this.#startKeyClocks(tenant, messageId, sendKeysJson, nowMs);
    if (typeof acceptanceKey === "number") journal.indexAcceptance(acceptanceKey);
    messages.remove(ref);
    deliveries.remove(ref);
    pushes.remove(tenant, messageId);
    if (typeof taskId !== "string" || !tasks.removeBegunBy(tenant, taskId, messageId)) return;
    taskPushes.removeOfTask(tenant, taskId);
    remoteTasks.remove(tenant, taskId);
  }

  async #scan(tenant: string, startRef: number, settledBeforeMs: number, limit: number): Promise<ScanResult> {
    const found: string[] = [];
    let firstFoundRef = 0;
    let lastRef = startRef;
    for (let rowsLeft = LIMITS.scanRowsMax; rowsLeft > 0; rowsLeft -= SCAN_ROWS) {
      const rows = this.#sql.scan.all(lastRef, SCAN_ROWS);
      for (const row of rows) {
        const [ref, rowTenant, messageId, acceptedAtMs] = row;
        // A message that was accepted after the time cannot have been settled before it.
        if (Number(acceptedAtMs) >= settledBeforeMs) return { found, firstFoundRef, lastRef, ended: true };
        lastRef = Number(ref);
        if (rowTenant !== tenant || !isRetirable(row, settledBeforeMs)) continue;
        if (found.length === 0) firstFoundRef = lastRef;
        found.push(String(messageId));
        if (found.length >= limit) return { found, firstFoundRef, lastRef, ended: false };
      }
      if (rows.length < SCAN_ROWS) return { found, firstFoundRef, lastRef, ended: true };
      await setImmediate();
    }
    return { found, firstFoundRef, lastRef, ended: false };
  }

  /** The archive's line about a message; undefined if it was retired meanwhile. */
  #line(tenant: string, messageId: string): RetirableMessage["line"] | undefined {
    const { deliveries, messages, tasks } = this.#parts;
    const message = messages.find(tenant, messageId);
    if (message === undefined) return undefined;
    const delivery = deliveries.find(tenant, messageId);
    const task = message.taskId === null ? undefined : tasks.find(tenant, message.taskId);
    const begun = task?.messageId === messageId ? task : undefined;
    return {
      tenant,
      message: JSON.parse(message.json) as unknown,
      ...(delivery === undefined ? {} : { delivery: archivedDelivery(delivery) }),
      ...(begun === undefined ? {} : { task: begun, artifacts: tasks.findArtifacts(tenant, begun.id) }),
    };
  }

  #startKeyClocks(tenant: string, messageId: string, sendKeysJson: string, nowMs: number): void {
    for (const [sender, recipient, key] of JSON.parse(sendKeysJson) as readonly SendKeyName[]) {
      this.#sql.startKeyClock.run(nowMs, tenant, sender, recipient, key, messageId);
    }
  }
}

/** In front of what was found, in case the caller does not retire it; at the beginning after the end. */
function nextStart(result: ScanResult): number {
  if (result.found.length > 0) return result.firstFoundRef - 1;
  return result.ended ? 0 : result.lastRef;
}

/** A message to an agent without a mailbox has no delivery; its age counts from its acceptance. */
function isRetirable(row: Row, settledBeforeMs: number): boolean {
  const [, , , , deliveryState, settledAtMs, taskState] = row;
  if (taskState !== null && !isTerminal(taskState as TaskState)) return false;
  if (deliveryState === null) return true;
  return isSettled(deliveryState as DeliveryState) && Number(settledAtMs) < settledBeforeMs;
}
