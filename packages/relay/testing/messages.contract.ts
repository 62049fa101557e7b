import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import type { MessageStore, ThreadSummary } from "../src/core/ports/messages.ts";
import {
  aNewMessage,
  aSend,
  BYTES_MAX,
  commit,
  LULU,
  type OpenStore,
  send,
  sendKeyOf,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const CAROL = "carol@host" as AgentId;
const NEWEST = Number.MAX_SAFE_INTEGER;

const THREAD = { tenant: TENANT, threadId: "话题", limit: 10, bytesMax: BYTES_MAX };

type ThreadsQuery = Parameters<MessageStore["threads"]>[0];

function threads(store: RelayStore, said: Partial<ThreadsQuery> = {}): ReturnType<MessageStore["threads"]> {
  const query = { tenant: TENANT, agent: undefined, beforePosition: NEWEST, limit: 10, scanRowsMax: 1_000 };
  return store.messages.threads({ ...query, ...said });
}

function idsOf(summaries: readonly ThreadSummary[]): readonly string[] {
  return summaries.map(({ threadId }) => threadId);
}

/** Reads all pages and answers the ids of the threads in their order. */
async function allPages(store: RelayStore, said: Partial<ThreadsQuery>): Promise<readonly string[]> {
  const ids: string[] = [];
  let beforePosition: number | undefined = NEWEST;
  while (beforePosition !== undefined) {
    const page = await threads(store, { ...said, beforePosition });
    ids.push(...idsOf(page.threads));
    beforePosition = page.nextPosition;
  }
  return ids;
}

export function describeMessages(open: OpenStore): void {
  describe("messages", () => {
    it("gives back the exact text of a message, in any script", async () => {
      await using store = await open();
      const json = JSON.stringify({ body: '知微你好 \u{1f44b}\u0000 "quoted"\n', 键: [1, null, true] });
      const message = await send(store, { id: "信-1", json, threadId: "话题" });
      assert.deepEqual((await store.messages.get(TENANT, ["信-1"]))[0], message);
      assert.equal((await store.messages.get(TENANT, ["信-2"]))[0], undefined);
    });

    it("keeps a long message whole", async () => {
      await using store = await open();
      const json = JSON.stringify({ body: "长".repeat(300_000) });
      const { id } = await send(store, { json });
      assert.equal((await store.messages.get(TENANT, [id]))[0]?.json, json);
    });

    it("keeps a message to an agent without a mailbox", async () => {
      await using store = await open();
      const message = aNewMessage();
      await commit(store, { messages: [message] });
      assert.deepEqual((await store.messages.get(TENANT, [message.id]))[0], message);
      assert.equal((await store.deliveries.get(TENANT, [message.id]))[0], undefined);
      const [inThread] = (await store.messages.thread({ ...THREAD, threadId: message.threadId })).messages;
      assert.deepEqual(inThread, { message, delivery: undefined });
    });

    it("finds a send key by sender, recipient and key together", async () => {
      await using store = await open();
      const sent = aSend();
      await commit(store, { ...sent, sendKeys: [sendKeyOf(sent.messages[0], "k")] });
      assert.equal((await store.messages.sendKey(TENANT, LULU, ZHIWEI, "k"))?.messageId, sent.messages[0].id);
      assert.equal(await store.messages.sendKey(TENANT, LULU, ZHIWEI, "K"), undefined);
      assert.equal(await store.messages.sendKey(TENANT, ZHIWEI, LULU, "k"), undefined);
      const other = aSend({ recipient: CAROL });
      await commit(store, { ...other, sendKeys: [sendKeyOf(other.messages[0], "k")] });
      assert.equal((await store.messages.sendKey(TENANT, LULU, CAROL, "k"))?.messageId, other.messages[0].id);
    });

    it("returns a thread in the order of acceptance, each message with its delivery", async () => {
      await using store = await open();
      // Ids that do not sort like the order in which the messages come.
      const ids = ["z", "a", "m"];
      for (const id of ids) await send(store, { id, threadId: "话题" });
      await send(store);
      const { messages, hasMore } = await store.messages.thread(THREAD);
      assert.deepEqual(
        messages.map(({ message }) => message.id),
        ids,
      );
      assert.equal(hasMore, false);
      assert.deepEqual(messages[0]?.delivery, await storedDelivery(store, "z"));
      const nothing = await store.messages.thread({ ...THREAD, threadId: "no such thread" });
      assert.deepEqual(nothing, { messages: [], hasMore: false });
    });
  });

  describe("threads", () => {
    it("are listed by their newest message, newest first, with their counts", async () => {
      await using store = await open();
      const json = JSON.stringify({ body: "长".repeat(1_000), subject: "题目" });
      const first = await send(store, { threadId: "一", acceptedAtMs: 10, json });
      await send(store, { threadId: "二", acceptedAtMs: 20, recipient: CAROL });
      await send(store, { threadId: "一", acceptedAtMs: 30, sender: ZHIWEI, recipient: LULU });
      await settle(store, first.id);
      const { nextPosition: lastPosition } = await threads(store, { limit: 1 });
      const { threads: found, nextPosition } = await threads(store);
      assert.equal(nextPosition, undefined);
      assert.deepEqual(idsOf(found), ["一", "二"]);
      const { participants, ...summary } = found[0] ?? { participants: [] };
      assert.deepEqual([...participants].toSorted(), [LULU, ZHIWEI].toSorted());
      assert.deepEqual(summary, {
        threadId: "一",
        lastPosition,
        messageCount: 2,
        openCount: 1,
        firstAtMs: 10,
        lastAtMs: 30,
        subject: "题目",
      });
    });

    it("begin with the message they are named after, and continue with those that name them", async () => {
      await using store = await open();
      const threadId = "thread_0198-甲";
      const first = await send(store, { id: "msg_0198-甲", threadId, acceptedAtMs: 10 });
      await send(store, { id: "msg_0198-乙", threadId: "thread_0198-乙" });
      await send(store, { id: "msg_0198-丙", threadId: "another", acceptedAtMs: 15 });
      const last = await send(store, { threadId, acceptedAtMs: 20, sender: ZHIWEI, recipient: LULU });
      const { messages } = await store.messages.thread({ ...THREAD, threadId });
      assert.deepEqual(
        messages.map(({ message, delivery }) => [message.id, message.threadId, delivery?.threadId]),
        [first.id, last.id].map((id) => [id, threadId, threadId]),
      );
      const { threads: found } = await threads(store);
      assert.deepEqual(idsOf(found), [threadId, "another", "thread_0198-乙"]);
      assert.deepEqual([found[0]?.messageCount, found[0]?.firstAtMs, found[0]?.lastAtMs], [2, 10, 20]);
      assert.deepEqual(await allPages(store, { limit: 1 }), idsOf(found));
      for (const unused of ["thread_0198-丙", "foreign0198-甲", "msg_0198-甲"]) {
        assert.deepEqual((await store.messages.thread({ ...THREAD, threadId: unused })).messages, [], unused);
      }
    });

    it("can be asked for those of one agent", async () => {
      await using store = await open();
      await send(store, { threadId: "ours" });
      await send(store, { threadId: "theirs", sender: CAROL, recipient: LULU });
      assert.deepEqual(idsOf((await threads(store, { agent: ZHIWEI })).threads), ["ours"]);
      assert.deepEqual(idsOf((await threads(store, { agent: CAROL })).threads), ["theirs"]);
      assert.deepEqual(idsOf((await threads(store, { agent: LULU })).threads), ["theirs", "ours"]);
    });

    it("come page by page, each thread once, whatever is sent in between", async () => {
      await using store = await open();
      for (const threadId of ["a", "b", "a", "c", "b", "d"]) await send(store, { threadId });
      const first = await threads(store, { limit: 2 });
      assert.deepEqual(idsOf(first.threads), ["d", "b"]);
      await send(store, { threadId: "c" });
      const second = await threads(store, { limit: 2, beforePosition: first.nextPosition ?? 0 });
      assert.deepEqual(idsOf(second.threads), ["a"]);
      assert.deepEqual(await allPages(store, { limit: 1 }), ["c", "d", "b", "a"]);
    });

    it("are found by a bounded scan that can continue", async () => {
      await using store = await open();
      await send(store, { threadId: "wanted", sender: CAROL });
      for (let count = 0; count < 30; count += 1) await send(store, { threadId: `other-${count % 7}` });
      const first = await threads(store, { agent: CAROL, scanRowsMax: 10 });
      assert.deepEqual(first.threads, []);
      assert.ok(first.nextPosition !== undefined);
      assert.deepEqual(await allPages(store, { agent: CAROL, scanRowsMax: 10 }), ["wanted"]);
    });

    it("count every scanned message, also of threads on an earlier page", async () => {
      await using store = await open();
      await send(store, { threadId: "old" });
      for (let count = 0; count < 30; count += 1) await send(store, { threadId: "long" });
      await send(store, { threadId: "long" });
      const [newest] = (await threads(store, { limit: 1 })).threads;
      const position = newest?.lastPosition ?? 0;
      const page = await threads(store, { beforePosition: position, scanRowsMax: 10 });
      assert.deepEqual(page.threads, []);
      assert.ok(page.nextPosition !== undefined && page.nextPosition < position);
      assert.deepEqual(await allPages(store, { scanRowsMax: 10 }), ["long", "old"]);
    });

    it("count the messages of threads that the filter leaves out, too", async () => {
      await using store = await open();
      await send(store, { threadId: "wanted", sender: CAROL });
      for (let count = 0; count < 30; count += 1) await send(store, { threadId: "long" });
      const page = await threads(store, { agent: CAROL, scanRowsMax: 31 });
      assert.deepEqual(page.threads, []);
      assert.deepEqual(await allPages(store, { agent: CAROL, scanRowsMax: 31 }), ["wanted"]);
    });

    it("of any length are counted whole, with all participants", async () => {
      await using store = await open();
      await send(store, { threadId: "long", sender: CAROL, acceptedAtMs: 1 });
      const sent = Array.from({ length: 2_100 }, () => aSend({ threadId: "long" }));
      await Promise.all(sent.map((each) => store.commit(each)));
      await commit(store, {
        messages: [aNewMessage({ threadId: "long", recipient: "dora@host" as AgentId })],
      });
      const [found] = (await threads(store, { scanRowsMax: 20_000 })).threads;
      assert.deepEqual([found?.messageCount, found?.openCount, found?.firstAtMs], [2_102, 2_101, 1]);
      assert.deepEqual(found?.participants.toSorted(), [CAROL, LULU, ZHIWEI, "dora@host"].toSorted());
    });

    it("are absent from an empty store", async () => {
      await using store = await open();
      assert.deepEqual(await threads(store), { threads: [], nextPosition: undefined });
    });
  });
}
