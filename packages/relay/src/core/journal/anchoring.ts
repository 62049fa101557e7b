import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { Chain, ChainHead } from "../ports/journal.ts";
import { KeyedMutex } from "../mechanisms/keyed-mutex.ts";
import { missingEventsText } from "../rules/event.ts";

/** Anchors that `verifyAnchors` compares before it lets other work run. */
const STEP_ANCHORS = 200;

/**
 * Writes the head of each chain to the anchors. It stops for a chain that does not contain the last anchor's event:
 * a new anchor would hide the damage. Each relay compares the chain with its own anchors alone: the store notes which
 * is the newest of all, but an editor of the log could edit that too.
 */
export class Anchoring {
  readonly #store: RelayStore;
  readonly #anchors: Anchors;
  readonly #clock: Clock;
  /** Reading the newest anchors and adding to them is one step for the file of this process. */
  readonly #mutex: KeyedMutex;

  constructor(parts: { readonly store: RelayStore; readonly anchors: Anchors; readonly clock: Clock }) {
    this.#store = parts.store;
    this.#anchors = parts.anchors;
    this.#clock = parts.clock;
    this.#mutex = new KeyedMutex(parts.clock);
  }

  /** Anchors all chains with new events. Includes tenants that only the anchors know. */
  async keepAll(): Promise<void> {
    const tenants = (await this.#store.tenants.list()).map(({ id }) => id);
    await this.#keep((latest) => new Set([...tenants, ...latest.keys()]));
  }

  /** Ends once an anchor covers all present events of the tenant. */
  async keep(tenant: string): Promise<void> {
    await this.#keep(() => [tenant]);
  }

  async #keep(choose: (latest: ReadonlyMap<string, Anchor>) => Iterable<string>): Promise<void> {
    await this.#mutex.run("anchors", async () => {
      const latest = await this.#anchors.latest();
      const due: Anchor[] = [];
      const problems: string[] = [];
      for (const tenant of choose(latest)) {
        const head = (await this.#store.journal.chain(tenant)).head;
        const before = latest.get(tenant);
        if (head.seq === (before?.seq ?? 0) && (before === undefined || head.hash === before.hash)) continue;
        const problem = before === undefined ? undefined : await this.#problem(before);
        if (problem === undefined) due.push({ tenant, ...head, atMs: this.#clock.nowMs() });
        else problems.push(`tenant ${tenant}: ${problem}`);
      }
      if (due.length > 0) await this.#anchors.keep(due);
      await Promise.all(
        due.map((anchor) => this.#store.commit({ tenant: anchor.tenant, events: [], anchors: [anchor] })),
      );
      if (problems.length > 0) throw new RelayError("internal", problems.join("; "));
    });
  }

  async #problem(before: Anchor): Promise<string | undefined> {
    const problem = await anchorProblem(this.#store, before);
    if (problem !== undefined) return problem;
    const chain = await this.#store.journal.chain(before.tenant);
    return passedByRetention(newestAnchor(this.#anchors, before, chain), chain.start);
  }
}

interface AnchorReport {
  /** The newest; absent when none is kept. */
  readonly latest: Anchor | undefined;
  readonly problem: string | undefined;
}

/**
 * Checks that the chain contains the event of every anchor. The newest alone would not do: an attacker who rewrites the
 * log could add an anchor that fits. `start` is where retention ended, read before this call.
 */
export async function verifyAnchors(
  { store, clock, anchors }: { readonly store: RelayStore; readonly clock: Clock; readonly anchors: Anchors },
  tenant: string,
  start: ChainHead,
): Promise<AnchorReport> {
  let latest: Anchor | undefined;
  let fitting: Anchor | undefined;
  let count = 0;
  try {
    for await (const anchor of anchors.history(tenant)) {
      const problem = outOfOrder(latest, anchor) ?? (await anchorProblem(store, anchor, fitting));
      latest = anchor;
      if (problem !== undefined) {
        const newest = (await anchors.latest()).get(tenant) ?? anchor;
        return { latest: newest, problem: (await missingEvents(store, newest)) ?? problem };
      }
      if (anchor.seq > start.seq) fitting = anchor;
      count += 1;
      if (count % STEP_ANCHORS === 0) await clock.nextTurn();
    }
  } catch (reason) {
    if (!(reason instanceof RelayError)) throw reason;
    return { latest, problem: reason.message };
  }
  if (latest === undefined) return { latest, problem: undefined };
  const newest = newestAnchor(anchors, latest, await store.journal.chain(tenant));
  return { latest, problem: passedByRetention(newest, start) };
}

/** Another relay may have kept a newer one. Only the store knows of it, so this counts only where there are others. */
function newestAnchor({ areAll }: Anchors, own: Anchor, { newestAnchor: noted }: Chain): Anchor {
  return areAll || noted === undefined || noted.seq <= own.seq ? own : noted;
}

/**
 * What is wrong with the chain at the anchor's event, as a sentence. Events that retention took cannot be checked.
 * `fitting` is an earlier anchor that the chain contains.
 */
async function anchorProblem(
  store: RelayStore,
  anchor: Anchor,
  fitting?: Anchor,
): Promise<string | undefined> {
  const { tenant, seq } = anchor;
  const missing = await missingEvents(store, anchor);
  if (missing !== undefined) return missing;
  const hash = await hashAt(store, tenant, seq);
  if (hash === anchor.hash || hash === "retired") return undefined;
  const from = fitting === undefined ? "up to it" : `from ${fitting.seq + 1} to ${seq}`;
  return `${witness(anchor)} with another hash: events ${from} were rewritten, or cut off and replaced`;
}

/** Retention keeps an anchor before it takes events, so it never gets ahead of the newest anchor. */
function passedByRetention(latest: Anchor, start: ChainHead): string | undefined {
  if (latest.seq >= start.seq) return undefined;
  const why = "retention goes no further than the newest anchor";
  return `${witness(latest)}, but all events up to ${start.seq} are gone, and ${why}`;
}

async function missingEvents(store: RelayStore, anchor: Anchor): Promise<string | undefined> {
  const head = (await store.journal.chain(anchor.tenant)).head;
  const missing = anchor.seq - head.seq;
  if (missing <= 0) return undefined;
  const events = missingEventsText(missing);
  return `${witness(anchor)}, but the chain ends with event ${head.seq}: ${events}`;
}

async function hashAt(store: RelayStore, tenant: string, seq: number): Promise<string | undefined> {
  const everything = { type: undefined, agentId: undefined, threadId: undefined };
  const one = { afterSeq: seq - 1, limit: 1, scanRowsMax: 1 };
  const [event] = (await store.journal.events({ tenant, ...everything, ...one })).events;
  if (event?.seq === seq) return event.hash;
  const start = (await store.journal.chain(tenant)).start;
  if (start.seq === seq) return start.hash;
  return start.seq > seq ? "retired" : undefined;
}

function outOfOrder(before: Anchor | undefined, anchor: Anchor): string | undefined {
  if (before === undefined || anchor.seq > before.seq) return undefined;
  return `an anchor for event ${anchor.seq} was kept after one for event ${before.seq}: the anchors were edited`;
}

function witness(anchor: Anchor): string {
  return `the anchor of ${formatInstant(anchor.atMs)} has seen event ${anchor.seq}`;
}
