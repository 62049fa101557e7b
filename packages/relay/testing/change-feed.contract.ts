import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { journalTopic, mailboxTopic, taskTopic, type Watch } from "../src/core/ports/change-feed.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { refused } from "./refusal.ts";
import {
  aSend,
  change,
  commit,
  anEvent,
  lease,
  LULU,
  type OpenStore,
  readIds,
  send,
  settle,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const LONG_MS = 30_000;
/** Answers at once whether something changed. */
const POLL = { timeoutMs: 0 };

/** As many watches as there may be: each of several handles may have a limit of its own. */
async function watchUntilRefused(store: RelayStore): Promise<readonly Watch[]> {
  const watches: Watch[] = [];
  const watchAll = (): void => {
    for (;;) watches.push(store.feed.watch(mailboxTopic(TENANT, `agent-${watches.length % 100}`)));
  };
  await refused(watchAll, "resource_exhausted");
  return watches;
}

export function describeChangeFeed(open: OpenStore): void {
  describe("the change feed", () => {
    it("wakes a reader when a message arrives, after it can be read", async () => {
      await using store = await open();
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      const woken = watch.changed({ timeoutMs: LONG_MS });
      const { id } = await send(store);
      assert.equal(await woken, true);
      assert.deepEqual(await readIds(store), [id]);
    });

    it("does not lose a change between watching and waiting", async () => {
      await using store = await open();
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      await send(store);
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
    });

    it("tells every reader, and no reader of another mailbox", async () => {
      await using store = await open();
      using first = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      using second = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      using other = store.feed.watch(mailboxTopic(TENANT, LULU));
      await send(store);
      assert.equal(await first.changed({ timeoutMs: LONG_MS }), true);
      assert.equal(await second.changed({ timeoutMs: LONG_MS }), true);
      assert.equal(await other.changed(POLL), false);
    });

    it("wakes the readers of a task when something happens to it, and not those of another", async () => {
      await using store = await open();
      using watch = store.feed.watch(taskTopic(TENANT, "活-1"));
      using other = store.feed.watch(taskTopic(TENANT, "活-2"));
      await commit(store, { events: [anEvent({ taskId: "活-1" })] });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
      assert.equal(await other.changed(POLL), false);
    });

    it("wakes for a delivery that becomes available again, and not for one that is settled", async () => {
      await using store = await open();
      const { id } = await send(store);
      await lease(store);
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      await change(store, id, { state: "available" });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
      using later = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      await settle(store, id);
      assert.equal(await later.changed(POLL), false);
    });

    it("wakes a worker when a message is no longer reserved for another", async () => {
      await using store = await open();
      const { id } = await send(store, {}, { reservedFor: "w1" });
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      await change(store, id, { reservedFor: null });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
    });

    it("stays silent about what was refused", async () => {
      await using store = await open();
      using mailbox = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      using journal = store.feed.watch(journalTopic(TENANT));
      const { id } = await send(store);
      for (const watch of [mailbox, journal]) await watch.changed({ timeoutMs: LONG_MS });
      await store.commit(aSend({ id }));
      assert.equal(await mailbox.changed(POLL), false);
      assert.equal(await journal.changed(POLL), false);
    });

    it("wakes the readers of the journal", async () => {
      await using store = await open();
      using watch = store.feed.watch(journalTopic(TENANT));
      const woken = watch.changed({ timeoutMs: LONG_MS });
      await commit(store, { events: [anEvent()] });
      assert.equal(await woken, true);
    });

    it("ends a wait with false at its timeout, and never without one", async () => {
      await using store = await open();
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      using other = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      const woken = watch.changed({ timeoutMs: Infinity });
      assert.equal(await other.changed({ timeoutMs: 1 }), false);
      await send(store);
      assert.equal(await woken, true);
    });

    it("ends a wait with false when its signal is aborted", async () => {
      await using store = await open();
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      const controller = new AbortController();
      const waiting = watch.changed({ timeoutMs: LONG_MS, signal: controller.signal });
      controller.abort();
      assert.equal(await waiting, false);
      assert.equal(await watch.changed({ timeoutMs: LONG_MS, signal: controller.signal }), false);
    });

    it("ends all waits when the store closes", async () => {
      const store = await open();
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      const waiting = watch.changed({ timeoutMs: LONG_MS });
      await store[Symbol.asyncDispose]();
      assert.equal(await waiting, false);
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), false);
    });

    it("lets a bounded number of readers watch, and others once some have stopped", async () => {
      await using store = await open();
      const watches = await watchUntilRefused(store);
      assert.ok(watches.length >= LIMITS.waitsMax);
      for (const each of watches.slice(-2)) {
        each[Symbol.dispose]();
        each[Symbol.dispose]();
      }
      using watch = store.feed.watch(mailboxTopic(TENANT, ZHIWEI));
      assert.ok((await watchUntilRefused(store)).length < 2);
      await send(store);
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
    });

    it("does not refuse the relay itself, nor count it among the readers", async () => {
      await using store = await open();
      const topic = mailboxTopic(TENANT, ZHIWEI);
      using early = store.feed.watch(topic, { isOwn: true });
      await watchUntilRefused(store);
      using late = store.feed.watch(topic, { isOwn: true });
      await refused(() => store.feed.watch(topic), "resource_exhausted");
      early[Symbol.dispose]();
      await refused(() => store.feed.watch(topic), "resource_exhausted");
      await send(store);
      assert.equal(await late.changed({ timeoutMs: LONG_MS }), true);
    });
  });
}
