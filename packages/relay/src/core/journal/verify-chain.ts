import type { VerifyResponse } from "@a2a-relay/protocol";
import type { Clock } from "../environment/clock.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import { digestOfText } from "../messages/canonical-json.ts";
import { type ChainHead, type EventRecord, eventHash } from "./event.ts";

const PAGE_ROWS = 1_000;

/**
 * Walks the whole chain from its anchor: every event must hash onto the one before, the last must be the
 * head, and every letter that is still kept must be the one that was accepted.
 */
export async function verifyChain(store: RelayStore, clock: Clock, tenant: string): Promise<VerifyResponse> {
  const anchor = await store.chainAnchor(tenant);
  const goal = await store.chainHead(tenant);
  let reached: ChainHead = anchor;
  let messages = 0;
  const report = (problem?: string): VerifyResponse => ({
    ok: problem === undefined,
    events: reached.seq - anchor.seq,
    messages,
    first_seq: anchor.seq + 1,
    last_seq: reached.seq,
    head: reached.hash,
    ...(problem === undefined ? {} : { problem }),
  });
  while (reached.seq < goal.seq) {
    const page = await store.events({ ...EVERYTHING, tenant, afterSeq: reached.seq });
    if (page.events.length === 0) return report(`events ${reached.seq + 1} to ${goal.seq} are missing`);
    for (const event of page.events) {
      if (event.seq > goal.seq) break;
      const broken = brokenLink(reached, event);
      if (broken !== undefined) return report(broken);
      const changed = await changedMessage(store, event);
      if (changed !== undefined) return report(changed);
      if (event.type === "message.accepted") messages += 1;
      reached = { seq: event.seq, hash: event.hash };
    }
    await clock.nextTurn();
  }
  if (reached.seq === goal.seq && reached.hash !== goal.hash) {
    return report(`the head says ${goal.hash}, the chain ends in ${reached.hash}`);
  }
  return report();
}

const EVERYTHING = {
  type: undefined,
  agentId: undefined,
  threadId: undefined,
  limit: PAGE_ROWS,
  scanRowsMax: PAGE_ROWS,
} as const;

function brokenLink(previous: ChainHead, event: EventRecord): string | undefined {
  if (event.seq !== previous.seq + 1) {
    return `event ${previous.seq + 1} is missing: ${event.seq} follows ${previous.seq}`;
  }
  if (eventHash(previous.hash, event) === event.hash) return undefined;
  return `event ${event.seq} (${event.type}) was changed after it was recorded`;
}

async function changedMessage(store: RelayStore, event: EventRecord): Promise<string | undefined> {
  if (event.type !== "message.accepted" || event.messageId === null) return undefined;
  const message = await store.message(event.tenant, event.messageId);
  if (message === undefined) return undefined;
  const { digest } = JSON.parse(event.dataJson) as { readonly digest: string };
  if (digestOfText(message.json) === digest) return undefined;
  return `message ${event.messageId} is not the one that event ${event.seq} accepted`;
}
