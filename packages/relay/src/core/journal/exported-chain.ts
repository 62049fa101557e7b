import { type EventView, formatInstant } from "@a2a-relay/protocol";
import type { ChainHead, EventRecord } from "../ports/journal.ts";
import { GENESIS, missingEventsText } from "../rules/event.ts";
import { eventOfView } from "./event-view.ts";
import { brokenLink } from "./verify-chain.ts";

/** An anchor that the user kept outside the relay. */
export type NotedAnchor = ChainHead;

/** The result of verifying an export. */
export interface ExportReport {
  readonly ok: boolean;
  readonly tenant?: string;
  readonly events: number;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly head: string;
  readonly problem?: string;
}

/** The last line of an export: its last event, and the time of the export. */
export interface AnchorRecord extends ChainHead {
  readonly tenant: string;
  readonly at: string;
}

/** Checks a part of one tenant's chain, event by event. The part may start anywhere in the chain. */
export class ExportedChain {
  #first: EventRecord | undefined;
  #last: EventRecord | undefined;
  readonly #noted: NotedAnchor | undefined;
  /** The hash that the chain has at the noted event. */
  #hashAtNoted: string | undefined;

  constructor(noted?: NotedAnchor) {
    this.#noted = noted;
  }

  get last(): EventRecord | undefined {
    return this.#last;
  }

  /** What is wrong with the next event, as a sentence. */
  add(event: EventRecord): string | undefined {
    const previous = this.#last ?? startBefore(event);
    if (this.#last !== undefined && event.tenant !== this.#last.tenant) {
      return `event ${event.seq} is of tenant ${event.tenant}, the others are of ${this.#last.tenant}`;
    }
    const problem = brokenLink(previous, event);
    if (this.#first === undefined) {
      this.#first = event;
      if (this.#noted?.seq === previous.seq) this.#hashAtNoted = previous.hash;
    }
    this.#last = event;
    if (this.#noted?.seq === event.seq) this.#hashAtNoted = event.hash;
    return problem;
  }

  /** A file may hold several exports in a row, each with its record. */
  compare(record: AnchorRecord): string | undefined {
    const last = this.#last;
    if (last === undefined) return `the anchor record speaks of event ${record.seq}, which is not there`;
    const fits = record.tenant === last.tenant && record.hash === last.hash && record.seq === last.seq;
    if (fits) return undefined;
    const difference = "some are missing or were rewritten";
    return `the anchor record speaks of event ${record.seq}, the events end with ${last.seq}: ${difference}`;
  }

  /** Compares the whole chain with the noted anchor, if there is one. */
  end(): string | undefined {
    if (this.#noted === undefined) return undefined;
    const bounds = { first: this.#first?.seq ?? 0, last: this.#last?.seq ?? 0 };
    return notedProblem(this.#noted, { ...bounds, hash: this.#hashAtNoted });
  }

  report(problem: string | undefined): ExportReport {
    const first = this.#first;
    const last = this.#last;
    return {
      ok: problem === undefined,
      ...(first === undefined ? {} : { tenant: first.tenant }),
      events: first === undefined || last === undefined ? 0 : last.seq - first.seq + 1,
      first_seq: first?.seq ?? 0,
      last_seq: last?.seq ?? 0,
      head: last?.hash ?? GENESIS.hash,
      ...(problem === undefined ? {} : { problem }),
    };
  }
}

/** Why the chain does not contain the noted anchor. `chain.hash` is its hash at the noted event. */
export function notedProblem(
  noted: NotedAnchor,
  chain: { readonly first: number; readonly last: number; readonly hash: string | undefined },
): string | undefined {
  if (chain.hash === noted.hash) return undefined;
  if (noted.seq > chain.last) {
    const missing = missingEventsText(noted.seq - chain.last);
    return `the anchor has seen event ${noted.seq}, but the last one here is ${chain.last}: ${missing}`;
  }
  if (chain.hash === undefined) {
    const advice = "search for it in an earlier export or in the archive";
    return `the anchor has seen event ${noted.seq}, but the first one here is ${chain.first}: ${advice}`;
  }
  return `the anchor has seen event ${noted.seq} with another hash: events up to it were rewritten`;
}

/** Reads an untrusted value; undefined when it is no event. */
export function eventFrom(value: unknown): EventRecord | undefined {
  return isEventView(value) ? eventOfView(value) : undefined;
}

/** Reads an untrusted value; undefined when it is no anchor record. */
export function anchorFrom(value: unknown): AnchorRecord | undefined {
  return isAnchorRecord(value) ? value : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const REQUIRED = ["type", "tenant", "actor", "previous_hash", "hash"];
const OPTIONAL = ["agent", "message_id", "task_id", "thread_id"];

function isEventView(value: unknown): value is EventView {
  if (!isObject(value)) return false;
  return (
    isSeq(value["seq"]) &&
    isInstant(value["at"]) &&
    isObject(value["data"]) &&
    REQUIRED.every((name) => typeof value[name] === "string") &&
    OPTIONAL.every((name) => value[name] === undefined || typeof value[name] === "string")
  );
}

function isAnchorRecord(value: unknown): value is AnchorRecord {
  if (!isObject(value)) return false;
  const { tenant, seq, hash, at } = value;
  return typeof tenant === "string" && isSeq(seq) && typeof hash === "string" && typeof at === "string";
}

function isSeq(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function isInstant(value: unknown): boolean {
  const atMs = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return !Number.isNaN(atMs) && formatInstant(atMs) === value;
}

/** The first event of a chain follows the genesis; later parts start after the event that they name. */
function startBefore(event: EventRecord): ChainHead {
  return event.seq === 1 ? GENESIS : { seq: event.seq - 1, hash: event.previousHash };
}
