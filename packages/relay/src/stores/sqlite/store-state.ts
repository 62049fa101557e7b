import type { DatabaseSync } from "node:sqlite";
import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Topic } from "../../core/ports/change-feed.ts";
import type { NamedAgent } from "../../core/ports/agents.ts";
import type { ChainHead } from "../../core/ports/journal.ts";
import { GENESIS } from "../../core/rules/event.ts";
import { prepareAll, type Statements } from "./database.ts";
import { type IndexedDelivery, OpenDeliveries } from "./open-deliveries.ts";

const SQL = {
  position: `
    select max(position) from (select position from store_head union all select position from chain_head)`,
  savePosition: "update store_head set position = ?",
  chainHeads: "select tenant, seq, hash, number from chain_head",
  saveChainHead: `
    insert into chain_head (tenant, seq, hash, number, position) values (?, ?, ?, ?, ?)
    on conflict do update set seq = excluded.seq, hash = excluded.hash, position = excluded.position`,
};

/** A point of a batch to which the state can roll back. */
export interface StateMark {
  readonly position: number;
  readonly undoLength: number;
  readonly topicsLength: number;
}

/** A report that an agent is present. */
export interface Sighting {
  readonly tenant: string;
  readonly agentId: AgentId;
  readonly seenAtMs: number;
}

/**
 * What the store keeps in memory beside its rows, for all handles on the database: the last position, the head of each
 * tenant's chain, the open deliveries, and the topics that the running batch will wake. It changes with every job and
 * rolls back with every rollback; the commit queue saves positions and heads once a batch.
 */
export class StoreState {
  /** Names of agents by tenant and text, as read; emptied when an agent changes. Reading them costs a send 20 %. */
  readonly namesByText = new Map<string, readonly NamedAgent[]>();
  /** Those that are not on disk yet, by tenant and agent. Every request is one, so they are written together. */
  readonly sightings = new Map<string, Sighting>();
  readonly #database: DatabaseSync;
  readonly #sql: Statements<typeof SQL>;
  readonly #deliveries: OpenDeliveries;
  readonly #chainHeads = new Map<string, ChainHead>();
  /** The chains that moved in the running batch, with their heads before it. */
  readonly #movedChains = new Map<string, ChainHead>();
  /** The number in the keys of a tenant's events, given with its first event. */
  readonly #chainNumbers = new Map<string, number>();
  #nextChainNumber = 0;
  #undo: (() => void)[] = [];
  #topics: Topic[] = [];
  #position: number;
  #savedPosition: number;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#sql = prepareAll(database, SQL);
    this.#position = Number(this.#sql.position.get()?.[0]);
    this.#savedPosition = this.#position;
    for (const [tenant, seq, hash, number] of this.#sql.chainHeads.all()) {
      this.#chainNumbers.set(String(tenant), Number(number));
      this.#nextChainNumber = Math.max(this.#nextChainNumber, Number(number) + 1);
      this.#chainHeads.set(String(tenant), { seq: Number(seq), hash: String(hash) });
    }
    this.#deliveries = new OpenDeliveries(database);
  }

  /** One counter for refs and positions of all tenants: it never gives a number twice. */
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

  /** A number given in a commit that fails stays the tenant's. */
  takeChainNumber(tenant: string): number {
    const taken = this.#chainNumbers.get(tenant);
    if (taken !== undefined) return taken;
    const number = this.#nextChainNumber;
    this.#nextChainNumber += 1;
    this.#chainNumbers.set(tenant, number);
    return number;
  }

  moveChainHead(tenant: string, head: ChainHead): void {
    const before = this.chainHead(tenant);
    if (!this.#movedChains.has(tenant)) this.#movedChains.set(tenant, before);
    this.#undo.push(() => this.#chainHeads.set(tenant, before));
    this.#chainHeads.set(tenant, head);
  }

  /** Read only; `moveDelivery` changes it. `unavailable` once the database is closed. */
  get deliveries(): Omit<OpenDeliveries, "move"> {
    if (!this.#database.isOpen) throw new RelayError("unavailable", "the store is closed");
    return this.#deliveries;
  }

  /** `undefined` stands for a delivery that does not exist before. */
  moveDelivery(
    tenant: string,
    agentId: string,
    from: IndexedDelivery | undefined,
    to: IndexedDelivery,
  ): void {
    this.#undo.push(() => this.#deliveries.move(tenant, agentId, to, from));
    this.#deliveries.move(tenant, agentId, from, to);
  }

  /** The change feed notifies the topic's readers once the batch is on disk. */
  wake(topic: Topic): void {
    this.#topics.push(topic);
  }

  mark(): StateMark {
    return {
      position: this.#position,
      undoLength: this.#undo.length,
      topicsLength: this.#topics.length,
    };
  }

  rollBackTo(mark: StateMark): void {
    this.namesByText.clear();
    for (let step = this.#undo.length; step > mark.undoLength; step -= 1) this.#undo.pop()?.();
    this.#topics.length = mark.topicsLength;
    this.#position = mark.position;
  }

  /** Writes the heads that moved, as the last step before the commit. */
  save(): void {
    let isPositionSaved = this.#position === this.#savedPosition;
    for (const [tenant, before] of this.#movedChains) {
      const head = this.chainHead(tenant);
      if (head === before) continue;
      const number = this.takeChainNumber(tenant);
      this.#sql.saveChainHead.run(tenant, head.seq, head.hash, number, this.#position);
      isPositionSaved = true;
    }
    if (!isPositionSaved) this.#sql.savePosition.run(this.#position);
  }

  /** After the commit: forgets how to roll back, and answers the topics to notify. */
  settle(): readonly Topic[] {
    this.#savedPosition = this.#position;
    this.#movedChains.clear();
    this.#undo = [];
    const topics = this.#topics;
    this.#topics = [];
    return topics;
  }
}
