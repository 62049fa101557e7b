import { LIMITS, POSTMASTER, TERMINAL_TASK_STATES, type TerminalTaskState } from "@a2a-relay/protocol";
import type { Archive } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { Anchoring } from "./anchoring.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { type EventDraft, NO_SUBJECT, type RetirableMessage, type RetiredMessage } from "../ports/journal.ts";

export interface RetentionSettings {
  /** 0 keeps messages for ever. */
  readonly messageRetentionMs: number;
  /** 0 keeps events for ever. */
  readonly journalRetentionMs: number;
}

export interface RetentionReport {
  readonly messages: number;
  readonly events: number;
  /** The step reached its limit, so there is probably more to do. */
  readonly more: boolean;
}

export interface RetentionParts {
  readonly store: RelayStore;
  readonly archive: Archive;
  readonly anchoring: Anchoring;
  readonly clock: Clock;
}

const STEP_ROWS = 200;
/** Each task has two messages to retire. */
const COMPACTED_TASKS = STEP_ROWS / 2;

/**
 * Moves old, settled messages and old events to the archive. It writes to the archive first and deletes afterwards, so
 * a crash in between leaves a line twice and loses none.
 */
export class Retention {
  readonly #store: RelayStore;
  readonly #archive: Archive;
  readonly #anchoring: Anchoring;
  readonly #clock: Clock;
  readonly #settings: RetentionSettings;

  constructor(parts: RetentionParts, settings: RetentionSettings) {
    this.#store = parts.store;
    this.#archive = parts.archive;
    this.#anchoring = parts.anchoring;
    this.#clock = parts.clock;
    this.#settings = settings;
  }

  async step(tenant: string): Promise<RetentionReport> {
    const nowMs = this.#clock.nowMs();
    const messages = await this.#retireMessages(tenant, nowMs);
    const events = await this.#retireEvents(tenant, nowMs);
    await this.#store.retention.forgetExpired({
      nowMs,
      sendKeysBeforeMs: nowMs - LIMITS.sendKeyKeptMs,
      cachedResultsMax: LIMITS.cachedResultsMax,
    });
    return { messages, events, more: messages === STEP_ROWS || events === STEP_ROWS };
  }

  /**
   * Retires, before their time, the request and the result of each finished task whose result was acknowledged. Answers
   * how many messages it retired.
   */
  async compact(tenant: string): Promise<number> {
    let retired = 0;
    for (const state of TERMINAL_TASK_STATES) retired += await this.#compactTasks(tenant, state);
    return retired;
  }

  async #compactTasks(tenant: string, state: TerminalTaskState): Promise<number> {
    const any = { agentId: undefined, threadId: undefined, parentId: undefined };
    let retired = 0;
    let afterId = "";
    for (;;) {
      const tasks = await this.#store.tasks.list({ tenant, state, ...any, afterId, limit: COMPACTED_TASKS });
      const last = tasks.at(-1);
      if (last === undefined) return retired;
      const messages = await this.#store.retention.archiveLines(
        tenant,
        await this.#messagesOfTaken(tenant, tasks),
      );
      retired += await this.#archiveAndForget(tenant, messages, this.#clock.nowMs());
      afterId = last.id;
      await this.#clock.nextTurn();
    }
  }

  /** Leaves out tasks with open deliveries, and those whose result is not acknowledged. */
  async #messagesOfTaken(tenant: string, tasks: readonly TaskRecord[]): Promise<readonly string[]> {
    const resultIds = tasks.flatMap(({ resultMessageId }) => resultMessageId ?? []);
    const results = await this.#store.deliveries.get(tenant, resultIds);
    const taken = new Set(
      results.flatMap((delivery) => (delivery?.state === "acknowledged" ? delivery.messageId : [])),
    );
    const done = tasks.filter(({ resultMessageId }) => taken.has(resultMessageId ?? ""));
    const doneIds = done.map(({ id }) => id);
    const open = new Set(
      (await this.#store.deliveries.openOfTasks(tenant, doneIds)).map(({ taskId }) => taskId),
    );
    return done.flatMap(({ id, messageId, resultMessageId }) =>
      open.has(id) || resultMessageId === null ? [] : [messageId, resultMessageId],
    );
  }

  async #retireMessages(tenant: string, nowMs: number): Promise<number> {
    const keptMs = this.#settings.messageRetentionMs;
    if (keptMs === 0) return 0;
    const messages = await this.#store.retention.messages(tenant, nowMs - keptMs, STEP_ROWS);
    return this.#archiveAndForget(tenant, messages, nowMs);
  }

  async #archiveAndForget(
    tenant: string,
    messages: readonly RetirableMessage[],
    nowMs: number,
  ): Promise<number> {
    if (messages.length === 0) return 0;
    await this.#archive.append(
      "messages",
      messages.map(({ line }) => line),
    );
    const messageIds = messages.map(({ messageId }) => messageId);
    await this.#store.retention.retireMessages(
      tenant,
      messageIds,
      nowMs,
      await this.#retired(tenant, messageIds, nowMs),
    );
    return messages.length;
  }

  /** Names each message and the event that accepted it. A message missing without such an event was deleted by hand. */
  async #retired(tenant: string, messageIds: readonly string[], nowMs: number): Promise<EventDraft> {
    const events = await this.#store.journal.ofMessages(tenant, messageIds);
    const acceptedSeqs = new Map(
      events.filter(({ type }) => type === "message.accepted").map(({ messageId, seq }) => [messageId, seq]),
    );
    const messages = messageIds.map((id): RetiredMessage => [id, acceptedSeqs.get(id) ?? 0]);
    return { type: "mail.retired", atMs: nowMs, actor: POSTMASTER, ...NO_SUBJECT, data: { messages } };
  }

  async #retireEvents(tenant: string, nowMs: number): Promise<number> {
    const keptMs = this.#settings.journalRetentionMs;
    if (keptMs === 0) return 0;
    const events = await this.#store.retention.events(tenant, nowMs - keptMs, STEP_ROWS);
    const last = events.at(-1);
    if (last === undefined) return 0;
    // Keep an anchor first. Then events missing beyond the newest anchor were not taken by retention.
    await this.#anchoring.keep(tenant);
    await this.#archive.append("events", events);
    await this.#store.retention.retireEvents(tenant, { seq: last.seq, hash: last.hash });
    return events.length;
  }
}
