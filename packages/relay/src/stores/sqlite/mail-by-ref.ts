import type { DatabaseSync } from "node:sqlite";
import type { MailboxMessage } from "../../core/ports/deliveries.ts";
import { prepare, type Statement } from "./database.ts";
import type { Ledger } from "./ledger.ts";
import {
  DELIVERY_COLUMN_COUNT,
  deliveryColumns,
  deliveryFromRow,
  ENVELOPE_COLUMNS,
  MESSAGE_COLUMN_COUNT,
  messageFromRow,
} from "./rows.ts";

/** New messages that are kept at hand: as many as a commit has under load, and none so long that they are a burden. */
const NEW_MAX = 64;
const NEW_CHARS_MAX = 16_384;

// The length of a message stands in front of its row: one that is too long for the answer is not even read.
const SELECT = `
  select ${deliveryColumns("d.")}, ${ENVELOPE_COLUMNS}, case when octet_length(m.json) <= ? then m.json end,
    octet_length(m.json)
  from delivery d join message m on m.ref = d.ref where d.ref = ?`;

export interface SizedMail {
  readonly mail: MailboxMessage;
  /** Of the message as JSON. */
  readonly bytes: number;
}

/**
 * MailboxMessage by the ref of its rows. What was just put into a mailbox that somebody watches is shown as it was written, once
 * it is on disk: that is the same, and to read it back would be a good part of the time until its reader has it.
 */
export class MailByRef {
  readonly #ledger: Ledger;
  readonly #select: Statement;
  /** As it lies there: whatever changes what a reader is shown of it takes it from here. */
  readonly #new = new Map<number, MailboxMessage>();

  constructor(database: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#select = prepare(database, SELECT);
  }

  /** Outside of a commit only: within one, its rows may not be there yet. */
  shown(ref: number, bytesMax: number): SizedMail | undefined {
    const mail = this.#new.get(ref);
    return mail === undefined
      ? this.#read(ref, bytesMax)
      : { mail, bytes: Buffer.byteLength(mail.message.json) };
  }

  /** Inside a commit: it may have come in the same one, and be gathered yet. */
  found(ref: number, bytesMax: number): SizedMail | undefined {
    const found = this.#read(ref, bytesMax);
    if (found !== undefined) return found;
    this.#ledger.flush();
    return this.#read(ref, bytesMax);
  }

  /** Inside a commit. */
  noteNew(ref: number, mail: MailboxMessage): void {
    if (mail.message.json.length > NEW_CHARS_MAX) return;
    if (this.#new.size >= NEW_MAX) this.#new.clear();
    this.#new.set(ref, mail);
    this.#ledger.onRollBack(() => this.#new.delete(ref));
  }

  /** Inside a commit. */
  forget(ref: number): void {
    this.#new.delete(ref);
  }

  #read(ref: number, bytesMax: number): SizedMail | undefined {
    const row = this.#select.get(bytesMax, ref);
    if (row === undefined) return undefined;
    const bytes = Number(row[DELIVERY_COLUMN_COUNT + MESSAGE_COLUMN_COUNT]);
    const mail = { delivery: deliveryFromRow(row), message: messageFromRow(row, DELIVERY_COLUMN_COUNT) };
    return { mail, bytes };
  }
}
