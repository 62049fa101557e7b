import { formatInstant, type VerifyResponse } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { digestOfText } from "../rules/digest.ts";
import type { ChainHead, EventRecord, RetiredMessage } from "../ports/journal.ts";
import { eventHash } from "../rules/event.ts";
import { verifyAnchors } from "./anchoring.ts";

const PAGE_ROWS = 200;
/** Messages digested in one turn: a few milliseconds. */
const TURN_BYTES = 1024 * 1024;

export interface VerifyParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly anchors: Anchors;
}

/**
 * Walks the whole chain from where retention left it: every event must hash onto the one before, the last must
 * be the head, every message that is still kept must be the one that was accepted, and every message that is not
 * must have been retired. Then it must hold what the anchors have seen.
 */
export async function verifyChain(parts: VerifyParts, tenant: string): Promise<VerifyResponse> {
  const start = await parts.store.chainAnchor(tenant);
  const walk = new ChainWalk(parts.store, tenant, start);
  const problem = await walkToEnd(walk, parts, tenant);
  const anchored = await verifyAnchors(parts, tenant, start);
  return walk.report(problem ?? anchored.problem, anchored.latest);
}

async function walkToEnd(
  walk: ChainWalk,
  { store, clock }: VerifyParts,
  tenant: string,
): Promise<string | undefined> {
  for (;;) {
    const head = await store.chainHead(tenant);
    if (walk.reached.seq >= head.seq) return walk.end(head);
    const problem = await walk.step(head);
    if (problem !== undefined) return problem;
    await clock.nextTurn();
  }
}

const EVERYTHING = {
  type: undefined,
  agentId: undefined,
  threadId: undefined,
  limit: PAGE_ROWS,
  scanRowsMax: PAGE_ROWS,
} as const;

class ChainWalk {
  readonly #store: RelayStore;
  readonly #tenant: string;
  readonly #start: ChainHead;
  reached: ChainHead;
  #messages = 0;
  /**
   * Messages that are gone and messages that were retired cancel each other out here, in whatever order they
   * are met, so that millions of them need no memory.
   */
  #unaccounted = 0n;
  /** Up to where messages were looked for while the chain had that length. */
  readonly #looked: { lastSeq: number; readonly headSeq: number }[] = [];
  /** Events never change, so they may wait here for a later step; messages may be retired meanwhile. */
  #unread: readonly EventRecord[] = [];
  #bytesLeft = TURN_BYTES;

  constructor(store: RelayStore, tenant: string, start: ChainHead) {
    this.#store = store;
    this.#tenant = tenant;
    this.#start = start;
    this.reached = start;
  }

  report(problem: string | undefined, anchor: Anchor | undefined): VerifyResponse {
    return {
      ok: problem === undefined,
      events: this.reached.seq - this.#start.seq,
      messages: this.#messages,
      first_seq: this.#start.seq + 1,
      last_seq: this.reached.seq,
      head: this.reached.hash,
      ...(anchor === undefined
        ? {}
        : { anchor: { seq: anchor.seq, hash: anchor.hash, at: formatInstant(anchor.atMs) } }),
      ...(problem === undefined ? {} : { problem }),
    };
  }

  /**
   * The next events, as many as one turn is good for; a sentence about the first thing that is wrong with
   * them. Nobody else has a turn within a step, so that all its messages are looked for under one head.
   */
  async step(head: ChainHead): Promise<string | undefined> {
    if (this.#unread.length === 0) this.#unread = await this.#page();
    if (this.#unread.length === 0) return `events ${this.reached.seq + 1} to ${head.seq} are missing`;
    const look = this.#look(head);
    this.#bytesLeft = TURN_BYTES;
    let count = 0;
    for (const event of this.#unread) {
      const problem = brokenLink(this.reached, event) ?? (await this.#checkMail(event));
      if (problem !== undefined) return problem;
      this.reached = { seq: event.seq, hash: event.hash };
      count += 1;
      if (this.#bytesLeft <= 0) break;
    }
    this.#unread = this.#unread.slice(count);
    look.lastSeq = this.reached.seq;
    return undefined;
  }

  /** What can only be told once the end is reached. */
  async end(head: ChainHead): Promise<string | undefined> {
    if (this.reached.hash !== head.hash) {
      return `the head says ${head.hash}, the chain ends in ${this.reached.hash}`;
    }
    const last = await this.#store.lastEventSeq(this.#tenant);
    if (last > head.seq) return `event ${last} was put behind the head of the chain, ${head.seq}`;
    if (this.#unaccounted === 0n) return undefined;
    return "a message that was accepted is gone, and retention did not take it";
  }

  async #page(): Promise<readonly EventRecord[]> {
    const filter = { ...EVERYTHING, tenant: this.#tenant, afterSeq: this.reached.seq };
    return (await this.#store.events(filter)).events;
  }

  /** While it goes on it covers all that is met. */
  #look(head: ChainHead): { lastSeq: number } {
    const last = this.#looked.at(-1);
    const look = last?.headSeq === head.seq ? last : { lastSeq: 0, headSeq: head.seq };
    if (look !== last) this.#looked.push(look);
    look.lastSeq = Number.MAX_SAFE_INTEGER;
    return look;
  }

  async #checkMail(event: EventRecord): Promise<string | undefined> {
    if (event.type === "mail.retired") this.#account(event);
    if (event.type !== "message.accepted" || event.messageId === null) return undefined;
    this.#messages += 1;
    const message = await this.#store.message(event.tenant, event.messageId);
    if (message === undefined) {
      this.#unaccounted ^= markOf(event.messageId);
      return undefined;
    }
    this.#bytesLeft -= message.json.length;
    const { digest } = JSON.parse(event.dataJson) as { readonly digest: string };
    if (digestOfText(message.json) === digest) return undefined;
    return `message ${event.messageId} is not the one that event ${event.seq} accepted`;
  }

  #account(event: EventRecord): void {
    const { messages } = JSON.parse(event.dataJson) as { readonly messages: readonly RetiredMessage[] };
    for (const [messageId, acceptedSeq] of messages) {
      // Not met on this walk: accepted before the start. Met while it was still there: retired since.
      const headSeq = this.#looked.find(({ lastSeq }) => acceptedSeq <= lastSeq)?.headSeq ?? 0;
      if (acceptedSeq > this.#start.seq && event.seq <= headSeq) this.#unaccounted ^= markOf(messageId);
    }
  }
}

/** What is wrong with an event that should follow the one before, as a sentence. */
export function brokenLink(previous: ChainHead, event: EventRecord): string | undefined {
  if (event.seq !== previous.seq + 1) {
    return `event ${previous.seq + 1} is missing: ${event.seq} follows ${previous.seq}`;
  }
  if (event.previousHash === previous.hash && eventHash(event) === event.hash) return undefined;
  return `event ${event.seq} (${event.type}) was changed after it was recorded`;
}

function markOf(messageId: string): bigint {
  return BigInt(`0x${digestOfText(messageId)}`);
}
