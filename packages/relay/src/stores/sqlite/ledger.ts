import type { DatabaseSync } from "node:sqlite";
import type { Topic } from "../../core/ports/change-feed.ts";
import type { ChainHead } from "../../core/ports/journal.ts";
import { GENESIS } from "../../core/rules/event.ts";
import { prepare, type Statement } from "./database.ts";
import { MailboxIndex, type Place } from "./mailbox-index.ts";

const POSITION = `
  select max(position) from (select position from store_head union all select position from chain_head)`;
const SAVE_POSITION = "update store_head set position = ?";
const CHAIN_HEADS = "select tenant, seq, hash, number from chain_head";
const SAVE_CHAIN_HEAD = `
  insert into chain_head (tenant, seq, hash, number, position) values (?, ?, ?, ?, ?)
  on conflict do update set seq = excluded.seq, hash = excluded.hash, position = excluded.position`;

/** Rows that are to be written before anybody looks for them, and before the commit at the latest. */
export interface Gathered {
  /** A clash where one of them meets a conflict. */
  flush(): void;
  drop(): void;
}

/** Those who wait for something to change. */
export interface Readers {
  isAwaited(topic: Topic): boolean;
}

/** A point of a batch that can be returned to. */
export interface LedgerMark {
  readonly position: number;
  readonly undoLength: number;
  readonly topicsLength: number;
}

/**
 * What the store keeps in memory beside its rows: the last position, the end of each tenant's chain,
 * which mail is open, and whom the running batch will wake. It moves with every job and goes back with
 * every rollback; the rows that keep it are written once a batch.
 */
export class Ledger {
  readonly #readers: Readers;
  readonly #savePosition: Statement;
  readonly #saveChainHead: Statement;
  readonly #chainHeads = new Map<string, ChainHead>();
  readonly #savedChainHeads = new Map<string, ChainHead>();
  readonly #movedChains = new Set<string>();
  /** By which a tenant's events are kept; given once, when its first event is. */
  readonly #chainNumbers = new Map<string, number>();
  #nextChainNumber = 0;
  readonly #mailboxes: MailboxIndex;
  #undo: (() => void)[] = [];
  #topics: Topic[] = [];
  #position: number;
  #savedPosition: number;

  readonly #gathered: Gathered[] = [];

  constructor(database: DatabaseSync, readers: Readers) {
    this.#readers = readers;
    this.#savePosition = prepare(database, SAVE_POSITION);
    this.#saveChainHead = prepare(database, SAVE_CHAIN_HEAD);
    this.#position = Number(prepare(database, POSITION).get()?.[0]);
    this.#savedPosition = this.#position;
    for (const [tenant, seq, hash, number] of prepare(database, CHAIN_HEADS).all()) {
      this.#chainNumbers.set(String(tenant), Number(number));
      this.#nextChainNumber = Math.max(this.#nextChainNumber, Number(number) + 1);
      const head = { seq: Number(seq), hash: String(hash) };
      this.#chainHeads.set(String(tenant), head);
      this.#savedChainHeads.set(String(tenant), head);
    }
    this.#mailboxes = new MailboxIndex(database);
  }

  /** One counter for refs and positions of all tenants: never the same number twice. */
  nextPosition(): number {
    this.#position += 1;
    return this.#position;
  }

  chainHead(tenant: string): ChainHead {
    return this.#chainHeads.get(tenant) ?? GENESIS;
  }

  /** Undefined while the tenant has no events. */
  chainNumber(tenant: string): number | undefined {
    return this.#chainNumbers.get(tenant);
  }

  /** Inside a commit. A number of a commit that came to nothing stays the tenant's; nobody else gets it. */
  takeChainNumber(tenant: string): number {
    const known = this.#chainNumbers.get(tenant);
    if (known !== undefined) return known;
    const number = this.#nextChainNumber;
    this.#nextChainNumber += 1;
    this.#chainNumbers.set(tenant, number);
    return number;
  }

  moveChainHead(tenant: string, head: ChainHead): void {
    const before = this.chainHead(tenant);
    this.#undo.push(() => this.#chainHeads.set(tenant, before));
    this.#chainHeads.set(tenant, head);
    this.#movedChains.add(tenant);
  }

  /** To be read only; it changes through `moveDelivery`. */
  get mailboxes(): Omit<MailboxIndex, "move"> {
    return this.#mailboxes;
  }

  /** `undefined` stands for mail that does not exist before, or after. */
  moveDelivery(
    tenant: string,
    agentId: string,
    ref: number,
    from: Place | undefined,
    to: Place | undefined,
  ): void {
    this.#undo.push(() => this.#mailboxes.move(tenant, agentId, ref, to, from));
    this.#mailboxes.move(tenant, agentId, ref, from, to);
  }

  gather(rows: Gathered): void {
    this.#gathered.push(rows);
  }

  /** Inside a commit. */
  flush(): void {
    for (const rows of this.#gathered) rows.flush();
  }

  /** Inside a commit: done if what is being written comes to nothing. */
  onRollBack(step: () => void): void {
    this.#undo.push(step);
  }

  /** Whoever waits for the topic is woken once the batch is on disk. Nobody can begin to wait while it is written. */
  wake(topic: Topic): boolean {
    const isAwaited = this.#readers.isAwaited(topic);
    if (isAwaited) this.#topics.push(topic);
    return isAwaited;
  }

  mark(): LedgerMark {
    return {
      position: this.#position,
      undoLength: this.#undo.length,
      topicsLength: this.#topics.length,
    };
  }

  rollBackTo(mark: LedgerMark): void {
    for (const rows of this.#gathered) rows.drop();
    for (let step = this.#undo.length; step > mark.undoLength; step -= 1) this.#undo.pop()?.();
    this.#topics.length = mark.topicsLength;
    this.#position = mark.position;
  }

  /** Writes the heads that moved, as the last act before the commit. */
  save(): void {
    let isPositionSaved = this.#position === this.#savedPosition;
    for (const tenant of this.#movedChains) {
      const head = this.chainHead(tenant);
      if (head === (this.#savedChainHeads.get(tenant) ?? GENESIS)) continue;
      const number = this.takeChainNumber(tenant);
      this.#saveChainHead.run(tenant, head.seq, head.hash, number, this.#position);
      isPositionSaved = true;
    }
    if (!isPositionSaved) this.#savePosition.run(this.#position);
  }

  /** After the commit: nothing can be undone any more. Answers whom to wake. */
  settle(): readonly Topic[] {
    this.#savedPosition = this.#position;
    for (const tenant of this.#movedChains) {
      this.#savedChainHeads.set(tenant, this.chainHead(tenant));
      this.#movedChains.delete(tenant);
    }
    this.#undo = [];
    const topics = this.#topics;
    this.#topics = [];
    return topics;
  }
}
