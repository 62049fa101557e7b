import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Anchor } from "../src/core/ports/archive.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { EventDraft, EventFilter, EventPage, EventType } from "../src/core/ports/journal.ts";
import { eventHash, GENESIS } from "../src/core/rules/event.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  anEvent,
  aNewMessage,
  aSend,
  commit,
  deliveryOf,
  lease,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  send,
  settle,
  TENANT,
  ZHIWEI,
  marks,
} from "./store-builders.ts";

function page(store: RelayStore, said: Partial<EventFilter> = {}): Promise<EventPage> {
  return store.journal.events({
    tenant: TENANT,
    afterSeq: 0,
    type: undefined,
    agentId: undefined,
    threadId: undefined,
    limit: 1_000,
    scanRowsMax: 10_000,
    ...said,
  });
}

async function seqs(store: RelayStore, said: Partial<EventFilter>): Promise<readonly number[]> {
  return (await page(store, said)).events.map(({ seq }) => seq);
}

/** Recomputes the chain from its anchor to its head. */
async function assertChainHolds(store: RelayStore): Promise<void> {
  let previous = (await store.journal.chain(TENANT)).start;
  for (const event of (await page(store)).events) {
    assert.equal(event.seq, previous.seq + 1);
    assert.equal(event.previousHash, previous.hash);
    assert.equal(event.hash, eventHash(event));
    previous = event;
  }
  assert.deepEqual((await store.journal.chain(TENANT)).head, { seq: previous.seq, hash: previous.hash });
}

export function describeJournal(open: OpenStore): void {
  describe("the journal", () => {
    it("starts at the genesis", async () => {
      await using store = await open();
      assert.deepEqual((await store.journal.chain(TENANT)).head, GENESIS);
      assert.deepEqual((await store.journal.chain(TENANT)).start, GENESIS);
      assert.deepEqual(await page(store), { events: [], lastSeq: 0, hasMore: false });
    });

    it("keeps every field of an event, in any script", async () => {
      await using store = await open();
      const draft = anEvent({
        type: "task.working",
        messageId: "信",
        taskId: "任务",
        threadId: "话题",
        data: { 原因: "开始了", n: 1.5 },
      });
      await commit(store, { events: [draft, anEvent({ agentId: null, data: {} })] });
      const { events } = await page(store);
      const { data, ...fields } = draft;
      const head = { tenant: TENANT, seq: 1, previousHash: GENESIS.hash, hash: events[0]?.hash };
      assert.deepEqual(events[0], { ...fields, ...head, dataJson: JSON.stringify(data) });
      assert.equal(events[1]?.agentId, null);
    });

    it("is one chain without a gap, whatever commits at once and whatever is refused", async () => {
      await using store = await open();
      const taken = await send(store);
      const acts: Promise<unknown>[] = [];
      for (let count = 0; count < 40; count += 1) {
        acts.push(store.commit(aSend()), store.commit(aSend({ id: taken.id })), lease(store));
        acts.push(
          store.deliveries.markDelivered(marks(TENANT, [taken.id], count)),
          store.commit({ tenant: TENANT, events: [anEvent(), anEvent()] }),
        );
      }
      await Promise.all(acts);
      await assertChainHolds(store);
      assert.ok((await store.journal.chain(TENANT)).head.seq >= 1 + 40 + 80);
    });

    it("returns events page by page", async () => {
      await using store = await open();
      for (let count = 0; count < 5; count += 1) await commit(store, { events: [anEvent()] });
      const first = await page(store, { limit: 2 });
      assert.deepEqual(
        first.events.map(({ seq }) => seq),
        [1, 2],
      );
      assert.equal(first.lastSeq, 2);
      assert.equal(first.hasMore, true);
      const last = await page(store, { limit: 3, afterSeq: 2 });
      assert.deepEqual(
        last.events.map(({ seq }) => seq),
        [3, 4, 5],
      );
      assert.equal(last.hasMore, false);
      assert.deepEqual(await page(store, { afterSeq: 5 }), { events: [], lastSeq: 5, hasMore: false });
    });

    it("filters by type, by thread, and by the agent that did it or to whom it happened", async () => {
      await using store = await open();
      await commit(store, {
        events: [
          anEvent({ type: "message.accepted", actor: LULU, agentId: ZHIWEI, threadId: "话题" }),
          anEvent({ type: "message.dead", actor: "operator", agentId: ZHIWEI }),
          anEvent({ type: "message.dead", actor: "operator", agentId: null, threadId: "话题" }),
        ],
      });
      assert.deepEqual(await seqs(store, { type: "message.dead" }), [2, 3]);
      assert.deepEqual(await seqs(store, { threadId: "话题" }), [1, 3]);
      assert.deepEqual(await seqs(store, { agentId: ZHIWEI }), [1, 2]);
      assert.deepEqual(await seqs(store, { agentId: LULU }), [1]);
      assert.deepEqual(await seqs(store, { agentId: ZHIWEI, type: "message.dead" }), [2]);
    });

    it("finds the events of one task without a scan, and continues after them", async () => {
      await using store = await open();
      const others = Array.from({ length: 20 }, () => anEvent());
      await commit(store, { events: [anEvent({ taskId: "活-1" }), ...others, anEvent({ taskId: "活-1" })] });
      await commit(store, { events: [anEvent({ taskId: "活-2" })] });
      const filter = { taskId: "活-1", scanRowsMax: 8 };
      assert.deepEqual(await seqs(store, filter), [1, 22]);
      assert.deepEqual(await seqs(store, { ...filter, afterSeq: 1 }), [22]);
      assert.deepEqual(await seqs(store, { ...filter, type: "agent.removed" }), []);
      const { lastSeq, hasMore } = await page(store, { ...filter, limit: 1 });
      assert.deepEqual([lastSeq, hasMore], [1, true]);
      assert.equal((await page(store, filter)).lastSeq, 23);
    });

    it("scans a bounded number of events and says where the next page starts", async () => {
      await using store = await open();
      await commit(store, { events: Array.from({ length: 20 }, () => anEvent()) });
      await commit(store, { events: [anEvent({ type: "agent.removed" })] });
      const filter = { type: "agent.removed", scanRowsMax: 8 };
      const first = await page(store, filter);
      assert.deepEqual(first, { events: [], lastSeq: 8, hasMore: true });
      const second = await page(store, { ...filter, afterSeq: first.lastSeq });
      assert.deepEqual(second, { events: [], lastSeq: 16, hasMore: true });
      const third = await page(store, { ...filter, afterSeq: second.lastSeq });
      assert.deepEqual(
        third.events.map(({ seq }) => seq),
        [21],
      );
      assert.equal(third.lastSeq, 21);
      assert.equal(third.hasMore, false);
    });

    it("returns the events of one message", async () => {
      await using store = await open();
      const { id } = await send(store);
      await send(store);
      await lease(store);
      const story = await store.journal.ofMessages(TENANT, [id]);
      assert.deepEqual(
        story.map(({ seq, type }) => [seq, type]),
        [
          [1, "message.accepted"],
          [3, "message.leased"],
        ],
      );
      assert.deepEqual(story[0], (await page(store)).events[0]);
      assert.deepEqual(await store.journal.ofMessages(TENANT, ["unknown"]), []);
    });

    it("returns the events of messages in any order of events, also after the messages are retired", async () => {
      await using store = await open();
      const messages = ["甲", "乙", "丙"].map((id) => aNewMessage({ id }));
      const about = (messageId: string, type: EventType): EventDraft => anEvent({ messageId, type });
      await commit(store, {
        messages,
        deliveries: messages.map((message) => deliveryOf(message)),
        events: [
          about("甲", "push.replayed"),
          about("甲", "message.accepted"),
          about("丙", "message.accepted"),
          about("别处", "message.accepted"),
          about("乙", "message.accepted"),
          about("乙", "message.accepted"),
        ],
      });
      const storyOf = async (id: string): Promise<readonly number[]> =>
        (await store.journal.ofMessages(TENANT, [id])).map(({ seq }) => seq);
      const stories = { 甲: [1, 2], 乙: [5, 6], 丙: [3], 别处: [4] };
      for (const [id, story] of Object.entries(stories)) assert.deepEqual(await storyOf(id), story, id);
      const { events } = await page(store);
      for (const { id } of messages) await settle(store, id);
      await store.retention.retireMessages(
        TENANT,
        messages.map(({ id }) => id),
        NOON_MS,
      );
      for (const [id, story] of Object.entries(stories)) assert.deepEqual(await storyOf(id), story, id);
      assert.deepEqual((await page(store)).events, events);
    });

    it("retires its beginning and keeps the anchor", async () => {
      await using store = await open();
      for (let count = 1; count <= 6; count += 1)
        await commit(store, { events: [anEvent({ atMs: count * 10 })] });
      const old = await store.retention.events(TENANT, 40, 10);
      assert.deepEqual(
        old.map(({ seq }) => seq),
        [1, 2, 3],
      );
      assert.equal((await store.retention.events(TENANT, 40, 2)).length, 2);
      const anchor = { seq: 3, hash: old.at(-1)?.hash ?? "" };
      await store.retention.retireEvents(TENANT, anchor);
      assert.deepEqual((await store.journal.chain(TENANT)).start, anchor);
      assert.deepEqual(
        (await page(store)).events.map(({ seq }) => seq),
        [4, 5, 6],
      );
      await commit(store, { events: [anEvent({ atMs: 70 })] });
      await assertChainHolds(store);
    });

    it("retires only a beginning: an old event behind a young one stays", async () => {
      await using store = await open();
      for (const atMs of [10, 99, 20]) await commit(store, { events: [anEvent({ atMs })] });
      assert.deepEqual(
        (await store.retention.events(TENANT, 50, 10)).map(({ seq }) => seq),
        [1],
      );
    });

    it("never moves its anchor back", async () => {
      await using store = await open();
      await commit(store, { events: [anEvent(), anEvent(), anEvent()] });
      const { events } = await page(store);
      const anchorAt = (seq: number): { seq: number; hash: string } => ({
        seq,
        hash: events[seq - 1]?.hash ?? "",
      });
      await store.retention.retireEvents(TENANT, anchorAt(2));
      await store.retention.retireEvents(TENANT, anchorAt(1));
      assert.deepEqual((await store.journal.chain(TENANT)).start, anchorAt(2));
    });

    it("continues after all of its events are retired", async () => {
      await using store = await open();
      await commit(store, { events: [anEvent(), anEvent()] });
      const head = (await store.journal.chain(TENANT)).head;
      await store.retention.retireEvents(TENANT, head);
      assert.deepEqual(await page(store), { events: [], lastSeq: 2, hasMore: false });
      await commit(store, { events: [anEvent()] });
      await assertChainHolds(store);
      assert.equal((await store.journal.chain(TENANT)).head.seq, 3);
    });

    it("notes the newest anchor of each tenant, without an event", async () => {
      await using store = await open();
      const anchor = (seq: number, tenant = TENANT): Anchor => ({
        tenant,
        seq,
        hash: String(seq).padStart(64, "0"),
        atMs: NOON_MS + seq,
      });
      const newest = async (tenant: string): Promise<Anchor | undefined> =>
        (await store.journal.chain(tenant)).newestAnchor;
      assert.equal(await newest(TENANT), undefined);
      await send(store);
      const { head } = await store.journal.chain(TENANT);
      for (const seq of [2, 7, 5]) await commit(store, { anchors: [anchor(seq)] });
      await store.commit({ tenant: OTHER_TENANT, events: [], anchors: [anchor(1, OTHER_TENANT)] });
      assert.deepEqual(await newest(TENANT), anchor(7));
      assert.deepEqual(await newest(OTHER_TENANT), anchor(1, OTHER_TENANT));
      assert.deepEqual((await store.journal.chain(TENANT)).head, head);
    });
  });
}
