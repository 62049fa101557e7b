import { LIMITS, POSTMASTER } from "@a2a-relay/protocol";
import type { Archive } from "../environment/archive.ts";
import type { Clock } from "../environment/clock.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import type { EventDraft, RetiredMessage } from "./event.ts";

export interface RetentionSettings {
  /** 0 keeps mail for ever. */
  readonly mailRetentionMs: number;
  /** 0 keeps events for ever. */
  readonly journalRetentionMs: number;
}

export interface RetentionReport {
  readonly messages: number;
  readonly events: number;
  /** A full step was needed: there is probably more to do at once. */
  readonly more: boolean;
}

const STEP_ROWS = 200;

/**
 * Keeps the store bounded: what is old and settled is written to the archive first and only then forgotten,
 * so a crash between the two leaves a line twice, never not at all.
 */
export class Retention {
  readonly #store: RelayStore;
  readonly #archive: Archive;
  readonly #clock: Clock;
  readonly #settings: RetentionSettings;

  constructor(
    parts: { readonly store: RelayStore; readonly archive: Archive; readonly clock: Clock },
    settings: RetentionSettings,
  ) {
    this.#store = parts.store;
    this.#archive = parts.archive;
    this.#clock = parts.clock;
    this.#settings = settings;
  }

  async step(tenant: string): Promise<RetentionReport> {
    const nowMs = this.#clock.nowMs();
    const messages = await this.#retireMail(tenant, nowMs);
    const events = await this.#retireEvents(tenant, nowMs);
    await this.#store.forgetSendKeys(nowMs - LIMITS.sendKeyKeptMs);
    return { messages, events, more: messages === STEP_ROWS || events === STEP_ROWS };
  }

  async #retireMail(tenant: string, nowMs: number): Promise<number> {
    const keptMs = this.#settings.mailRetentionMs;
    if (keptMs === 0) return 0;
    const mail = await this.#store.retirableMail(tenant, nowMs - keptMs, STEP_ROWS);
    if (mail.length === 0) return 0;
    await this.#archive.append(
      "messages",
      mail.map(({ line }) => JSON.stringify(line)),
    );
    const messageIds = mail.map(({ messageId }) => messageId);
    await this.#store.retireMail(tenant, messageIds, nowMs, await this.#retired(tenant, messageIds, nowMs));
    return mail.length;
  }

  /** What left, and which event had accepted it: a letter that is missing without this was removed by hand. */
  async #retired(tenant: string, messageIds: readonly string[], nowMs: number): Promise<EventDraft> {
    const messages: RetiredMessage[] = [];
    for (const messageId of messageIds) {
      const events = await this.#store.eventsOfMessage(tenant, messageId);
      const accepted = events.find(({ type }) => type === "message.accepted");
      messages.push([messageId, accepted?.seq ?? 0]);
    }
    const nobody = { agentId: null, messageId: null, taskId: null, threadId: null };
    return { type: "mail.retired", atMs: nowMs, actor: POSTMASTER, ...nobody, data: { messages } };
  }

  async #retireEvents(tenant: string, nowMs: number): Promise<number> {
    const keptMs = this.#settings.journalRetentionMs;
    if (keptMs === 0) return 0;
    const events = await this.#store.retirableEvents(tenant, nowMs - keptMs, STEP_ROWS);
    const last = events.at(-1);
    if (last === undefined) return 0;
    await this.#archive.append(
      "events",
      events.map((event) => JSON.stringify(event)),
    );
    await this.#store.retireEvents(tenant, { seq: last.seq, hash: last.hash });
    return events.length;
  }
}
