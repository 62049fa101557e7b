import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../ports/archive.ts";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { ChainHead } from "../ports/journal.ts";
import { missingEventsText } from "../rules/event.ts";

/** Anchors compared in one turn. */
const TURN_ANCHORS = 200;

export interface AnchorReport {
  /** The newest; absent when none is kept. */
  readonly latest: Anchor | undefined;
  readonly problem: string | undefined;
}

/**
 * Whether the chain holds every event that an anchor has seen. All of them are asked, not the newest alone:
 * where anchors can only be added, somebody who rewrites the log could add one that fits. `start` is what
 * retention left behind, read before this is called.
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
      if (count % TURN_ANCHORS === 0) await clock.nextTurn();
    }
  } catch (reason) {
    if (!(reason instanceof RelayError)) throw reason;
    return { latest, problem: reason.message };
  }
  return { latest, problem: latest === undefined ? undefined : passedByRetention(latest, start) };
}

/**
 * What is wrong with the chain where the anchor stands, as a sentence. What retention took before cannot be
 * looked at any more. `fitting` is an earlier anchor that the chain does hold.
 */
export async function anchorProblem(
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

/** Retention keeps an anchor before it takes anything, so that it never gets ahead of the newest one. */
export function passedByRetention(latest: Anchor, start: ChainHead): string | undefined {
  if (latest.seq >= start.seq) return undefined;
  const why = "retention goes no further than the newest anchor";
  return `${witness(latest)}, but all events up to ${start.seq} are gone, and ${why}`;
}

async function missingEvents(store: RelayStore, anchor: Anchor): Promise<string | undefined> {
  const head = await store.chainHead(anchor.tenant);
  const missing = anchor.seq - head.seq;
  if (missing <= 0) return undefined;
  const events = missingEventsText(missing);
  return `${witness(anchor)}, but the chain ends with event ${head.seq}: ${events}`;
}

async function hashAt(store: RelayStore, tenant: string, seq: number): Promise<string | undefined> {
  const everything = { type: undefined, agentId: undefined, threadId: undefined };
  const one = { afterSeq: seq - 1, limit: 1, scanRowsMax: 1 };
  const [event] = (await store.events({ tenant, ...everything, ...one })).events;
  if (event?.seq === seq) return event.hash;
  const start = await store.chainAnchor(tenant);
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
