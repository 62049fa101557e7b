import { type AnchorView, formatInstant, type VerifyResponse } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { digestOfText } from "../rules/digest.ts";
import type { Chain, ChainHead, EventRecord, RetiredMessage } from "../ports/journal.ts";
import { eventHash } from "../rules/event.ts";
import { verifyAnchors } from "./anchoring.ts";
import { eventDataOf } from "../mechanisms/stored-json.ts";

const PAGE_ROWS = 200;
/** Bytes of messages digested in one step: a few milliseconds. */
const STEP_BYTES = 1024 * 1024;

export interface VerifyParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly anchors: Anchors;
}

/**
 * Verifies the chain from the end of retention on. Every event must hash onto the one before, the last must be the
 * head, every kept message must be the one that was accepted, and every other message must have been retired. The
 * chain must contain the event of every anchor.
 */
export async function verifyChain(parts: VerifyParts, tenant: string): Promise<VerifyResponse> {
  const start = (await parts.store.journal.chain(tenant)).start;
  const walk = new ChainWalk(parts.store, tenant, start);
  const problem = await walkToEnd(walk, parts, tenant);
  const anchored = await verifyAnchors(parts, tenant, start);
  const { newestAnchor: newest } = await parts.store.journal.chain(tenant);
  return {
    ...walk.report(problem ?? anchored.problem),
    ...(anchored.latest === undefined ? {} : { anchor: viewAnchor(anchored.latest) }),
    ...(newest === undefined || newest.seq <= (anchored.latest?.seq ?? 0)
      ? {}
      : { newest_anchor: viewAnchor(newest) }),
  };
}

function viewAnchor({ seq, hash, atMs }: Anchor): AnchorView {
  return { seq, hash, at: formatInstant(atMs) };
}

async function walkToEnd(
  walk: ChainWalk,
  { store, clock }: VerifyParts,
  tenant: string,
): Promise<string | undefined> {
  for (;;) {
    const chain = await store.journal.chain(tenant);
    if (walk.reached.seq >= chain.head.seq) return walk.end(chain);
    const problem = await walk.step(chain.head);
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
   * XOR over the digests of the ids of missing and of retired messages. It is 0 when both sets are equal, whatever
   * their order, and needs no memory per message.
   */
  #unaccounted = 0n;
  /** For each head of the chain, the last event whose message was read under it. */
  readonly #reads: { lastSeq: number; readonly headSeq: number }[] = [];
  /** The rest of the page for later steps. Events never change; messages may be retired meanwhile. */
  #unread: readonly EventRecord[] = [];
  #bytesLeft = STEP_BYTES;

  constructor(store: RelayStore, tenant: string, start: ChainHead) {
    this.#store = store;
    this.#tenant = tenant;
    this.#start = start;
    this.reached = start;
  }

  report(problem: string | undefined): VerifyResponse {
    return {
      ok: problem === undefined,
      events: this.reached.seq - this.#start.seq,
      messages: this.#messages,
      first_seq: this.#start.seq + 1,
      last_seq: this.reached.seq,
      head: this.reached.hash,
      ...(problem === undefined ? {} : { problem }),
    };
  }

  /**
   * Checks the next events, up to `STEP_BYTES` of messages. Answers the first problem as a sentence. `head` is the head
   * of the chain while the step reads messages.
   */
  async step(head: ChainHead): Promise<string | undefined> {
    if (this.#unread.length === 0) this.#unread = await this.#page();
    if (this.#unread.length === 0) return `events ${this.reached.seq + 1} to ${head.seq} are missing`;
    const read = this.#readUnder(head);
    this.#bytesLeft = STEP_BYTES;
    let count = 0;
    for (const event of this.#unread) {
      const problem = brokenLink(this.reached, event) ?? (await this.#checkMessage(event));
      if (problem !== undefined) return problem;
      this.reached = { seq: event.seq, hash: event.hash };
      count += 1;
      if (this.#bytesLeft <= 0) break;
    }
    this.#unread = this.#unread.slice(count);
    read.lastSeq = this.reached.seq;
    return undefined;
  }

  end({ head, lastSeq: last }: Chain): string | undefined {
    if (this.reached.hash !== head.hash) {
      return `the head says ${head.hash}, the chain ends in ${this.reached.hash}`;
    }
    if (last > head.seq) return `event ${last} was put behind the head of the chain, ${head.seq}`;
    if (this.#unaccounted === 0n) return undefined;
    return "a message that was accepted is gone, and retention did not take it";
  }

  async #page(): Promise<readonly EventRecord[]> {
    const filter = { ...EVERYTHING, tenant: this.#tenant, afterSeq: this.reached.seq };
    return (await this.#store.journal.events(filter)).events;
  }

  /** Covers all later events until the step ends. */
  #readUnder(head: ChainHead): { lastSeq: number } {
    const last = this.#reads.at(-1);
    const read = last?.headSeq === head.seq ? last : { lastSeq: 0, headSeq: head.seq };
    if (read !== last) this.#reads.push(read);
    read.lastSeq = Number.MAX_SAFE_INTEGER;
    return read;
  }

  async #checkMessage(event: EventRecord): Promise<string | undefined> {
    if (event.type === "mail.retired") this.#account(event);
    if (event.type !== "message.accepted" || event.messageId === null) return undefined;
    this.#messages += 1;
    const [message] = await this.#store.messages.get(event.tenant, [event.messageId]);
    if (message === undefined) {
      this.#unaccounted ^= markOf(event.messageId);
      return undefined;
    }
    this.#bytesLeft -= message.json.length;
    const { digest } = eventDataOf(event) as { readonly digest: string };
    if (digestOfText(message.json) === digest) return undefined;
    return `message ${event.messageId} is not the one that event ${event.seq} accepted`;
  }

  #account(event: EventRecord): void {
    const { messages } = eventDataOf(event) as { readonly messages: readonly RetiredMessage[] };
    for (const [messageId, acceptedSeq] of messages) {
      // Skips messages accepted before the start, and messages that were retired after this walk had read them.
      const headSeq = this.#reads.find(({ lastSeq }) => acceptedSeq <= lastSeq)?.headSeq ?? 0;
      if (acceptedSeq > this.#start.seq && event.seq <= headSeq) this.#unaccounted ^= markOf(messageId);
    }
  }
}

/** What is wrong with the event after `previous`, as a sentence. */
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
