import type { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import {
  type DeliveryState,
  formatInstant,
  isSettled,
  isTerminal,
  LIMITS,
  type TaskState,
} from "@a2a-relay/protocol";
import type { RetirableMessage } from "../../core/ports/journal.ts";
import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import { prepare, type Row, type Statement } from "./database.ts";
import type { Journal } from "./journal.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { Messages, SendKeyName } from "./messages.ts";
import type { Pushes } from "./pushes.ts";
import type { RemoteTasks } from "./remote-tasks.ts";
import type { TaskPushes } from "./task-pushes.ts";
import type { TaskUpdates } from "./task-updates.ts";
import type { Tasks } from "./tasks.ts";

const WALK_ROWS = 500;

const WALK = `
  select m.ref, m.tenant, m.id, m.accepted_at_ms, d.state, d.settled_at_ms, t.state
  from message m left join delivery d on d.ref = m.ref
  left join task t on t.tenant = m.tenant and t.id = m.task_id
  where m.ref > ? order by m.ref limit ?`;
const TRACES = `
  select m.ref, m.task_id, m.send_keys_json, m.accepted_place, d.state
  from message m left join delivery d on d.ref = m.ref where m.tenant = ? and m.id = ?`;
const FORGET_MESSAGE = "delete from message where ref = ?";
const FORGET_DELIVERY = "delete from delivery where ref = ?";
const FORGET_TASK = "delete from task where tenant = ? and id = ? and message_id = ?";
const FORGET_ARTIFACTS = "delete from artifact where tenant = ? and task_id = ?";
const START_KEY_CLOCK = `
  update send_key set gone_at_ms = ?
  where tenant = ? and sender = ? and recipient = ? and key = ? and message_id = ?`;
const FORGET_KEYS = `
  delete from send_key where (tenant, sender, recipient, key) in (
    select tenant, sender, recipient, key from send_key indexed by send_key_gone
    where gone_at_ms is not null and gone_at_ms < ? limit ?)`;

interface Stretch {
  readonly found: readonly string[];
  readonly firstFoundRef: number;
  readonly lastRef: number;
  readonly ended: boolean;
}

/** Finds and forgets what is old and done. It walks the mail by age, so that sends pay for no index. */
export class Retention {
  readonly #journal: Journal;
  readonly #messages: Messages;
  readonly #mailboxes: Mailboxes;
  readonly #pushes: Pushes;
  readonly #remoteTasks: RemoteTasks;
  readonly #tasks: Tasks;
  readonly #taskPushes: TaskPushes;
  readonly #taskUpdates: TaskUpdates;
  readonly #walk: Statement;
  readonly #traces: Statement;
  readonly #forgetMessage: Statement;
  readonly #forgetDelivery: Statement;
  readonly #forgetTask: Statement;
  readonly #forgetArtifacts: Statement;
  readonly #startKeyClock: Statement;
  readonly #forgetKeys: Statement;
  /** Where the walk of each tenant goes on: behind mail that was looked at and must stay for now. */
  readonly #cursors = new Map<string, number>();

  constructor(
    database: DatabaseSync,
    parts: {
      readonly journal: Journal;
      readonly messages: Messages;
      readonly mailboxes: Mailboxes;
      readonly pushes: Pushes;
      readonly remoteTasks: RemoteTasks;
      readonly tasks: Tasks;
      readonly taskPushes: TaskPushes;
      readonly taskUpdates: TaskUpdates;
    },
  ) {
    this.#journal = parts.journal;
    this.#messages = parts.messages;
    this.#mailboxes = parts.mailboxes;
    this.#pushes = parts.pushes;
    this.#remoteTasks = parts.remoteTasks;
    this.#tasks = parts.tasks;
    this.#taskPushes = parts.taskPushes;
    this.#taskUpdates = parts.taskUpdates;
    this.#walk = prepare(database, WALK);
    this.#traces = prepare(database, TRACES);
    this.#forgetMessage = prepare(database, FORGET_MESSAGE);
    this.#forgetDelivery = prepare(database, FORGET_DELIVERY);
    this.#forgetTask = prepare(database, FORGET_TASK);
    this.#forgetArtifacts = prepare(database, FORGET_ARTIFACTS);
    this.#startKeyClock = prepare(database, START_KEY_CLOCK);
    this.#forgetKeys = prepare(database, FORGET_KEYS);
  }

  async retirableMessages(
    tenant: string,
    settledBeforeMs: number,
    limit: number,
  ): Promise<readonly RetirableMessage[]> {
    const start = this.#cursors.get(tenant) ?? 0;
    let stretch = await this.#search(tenant, start, settledBeforeMs, limit);
    if (stretch.ended && stretch.found.length === 0 && start > 0) {
      stretch = await this.#search(tenant, 0, settledBeforeMs, limit);
    }
    this.#cursors.set(tenant, nextStart(stretch));
    return this.archiveLines(tenant, stretch.found);
  }

  archiveLines(tenant: string, messageIds: readonly string[]): readonly RetirableMessage[] {
    return messageIds.flatMap((messageId) => {
      const line = this.#line(tenant, messageId);
      return line === undefined ? [] : [{ messageId, line }];
    });
  }

  /** Inside a commit. MailboxMessage that is open after all stays. */
  retireMessages(tenant: string, messageIds: readonly string[], nowMs: number): void {
    for (const messageId of messageIds) {
      const [ref, taskId, sendKeysJson, acceptedPlace, state] = this.#traces.get(tenant, messageId) ?? [];
      if (typeof ref !== "number" || (state !== null && !isSettled(state as DeliveryState))) continue;
      this.#startKeyClocks(tenant, messageId, sendKeysJson ?? null, nowMs);
      if (typeof acceptedPlace === "number") this.#journal.enterAcceptance(acceptedPlace);
      this.#forgetMessage.run(ref);
      this.#forgetDelivery.run(ref);
      this.#pushes.forget(tenant, messageId);
      if (typeof taskId !== "string") continue;
      const { changes } = this.#forgetTask.run(tenant, taskId, messageId);
      if (changes === 0) continue;
      this.#forgetArtifacts.run(tenant, taskId);
      this.#taskPushes.forgetTask(tenant, taskId);
      this.#taskUpdates.forget(tenant, taskId);
      this.#remoteTasks.forget(tenant, taskId);
    }
  }

  /** Inside a commit. At most `limit`; answers how many. */
  forgetSendKeys(goneBeforeMs: number, limit: number): number {
    return Number(this.#forgetKeys.run(goneBeforeMs, limit).changes);
  }

  async #search(tenant: string, startRef: number, settledBeforeMs: number, limit: number): Promise<Stretch> {
    const found: string[] = [];
    let firstFoundRef = 0;
    let lastRef = startRef;
    for (let budget = LIMITS.scanRowsMax; budget > 0; budget -= WALK_ROWS) {
      const rows = this.#walk.all(lastRef, WALK_ROWS);
      for (const row of rows) {
        const [ref, rowTenant, messageId, acceptedAtMs] = row;
        // Whatever was accepted after the time cannot have been settled before it.
        if (Number(acceptedAtMs) >= settledBeforeMs) return { found, firstFoundRef, lastRef, ended: true };
        lastRef = Number(ref);
        if (rowTenant !== tenant || !isRetirable(row, settledBeforeMs)) continue;
        if (found.length === 0) firstFoundRef = lastRef;
        found.push(String(messageId));
        if (found.length >= limit) return { found, firstFoundRef, lastRef, ended: false };
      }
      if (rows.length < WALK_ROWS) return { found, firstFoundRef, lastRef, ended: true };
      await setImmediate();
    }
    return { found, firstFoundRef, lastRef, ended: false };
  }

  /** What the archive keeps of it; undefined if it went since. */
  #line(tenant: string, messageId: string): RetirableMessage["line"] | undefined {
    const message = this.#messages.message(tenant, messageId);
    if (message === undefined) return undefined;
    const delivery = this.#mailboxes.delivery(tenant, messageId);
    const task = message.taskId === null ? undefined : this.#tasks.task(tenant, message.taskId);
    const began = task?.messageId === messageId ? task : undefined;
    return {
      tenant,
      message: JSON.parse(message.json) as unknown,
      ...(delivery === undefined ? {} : { delivery: readableDelivery(delivery) }),
      ...(began === undefined ? {} : { task: began, artifacts: this.#tasks.artifacts(tenant, began.id) }),
    };
  }

  #startKeyClocks(tenant: string, messageId: string, sendKeysJson: Row[number], nowMs: number): void {
    if (typeof sendKeysJson !== "string") return;
    for (const [sender, recipient, key] of JSON.parse(sendKeysJson) as readonly SendKeyName[]) {
      this.#startKeyClock.run(nowMs, tenant, sender, recipient, key, messageId);
    }
  }
}

/** Before what was found, in case the caller does not retire it; at the beginning after the end. */
function nextStart(stretch: Stretch): number {
  if (stretch.found.length > 0) return stretch.firstFoundRef - 1;
  return stretch.ended ? 0 : stretch.lastRef;
}

/** A message to somebody without a mailbox has no delivery; it is as old as its acceptance. */
function isRetirable(row: Row, settledBeforeMs: number): boolean {
  const [, , , , deliveryState, settledAtMs, taskState] = row;
  if (taskState !== null && !isTerminal(taskState as TaskState)) return false;
  if (deliveryState === null) return true;
  return isSettled(deliveryState as DeliveryState) && Number(settledAtMs) < settledBeforeMs;
}

function readableDelivery(delivery: DeliveryRecord): Readonly<Record<string, unknown>> {
  const at = (ms: number | null): string | undefined => (ms === null ? undefined : formatInstant(ms));
  // JSON leaves out what is undefined.
  return {
    recipient: delivery.agentId,
    sender: delivery.sender,
    task_id: delivery.taskId ?? undefined,
    state: delivery.state,
    reason: delivery.reason ?? undefined,
    attempt: delivery.attempt,
    lease_id: delivery.leaseId ?? undefined,
    worker: delivery.worker ?? undefined,
    leased_at: at(delivery.leasedAtMs),
    delivered_at: at(delivery.deliveredAtMs),
    expires_at: at(delivery.expiresAtMs),
    settled_at: at(delivery.settledAtMs),
    duplicate_safety: delivery.duplicateSafety,
    idempotency_key: delivery.idempotencyKey ?? undefined,
  };
}
