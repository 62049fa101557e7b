import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewMessage,
  attemptOf,
  clashOf,
  commit,
  type OpenStore,
  pushOf,
  settle,
  storedPush,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

export function describePushAttempts(open: OpenStore): void {
  describe("push attempts", () => {
    it("are returned oldest first, with every field, and appended", async () => {
      await using store = await open();
      const push = await storedPush(store);
      const answer = "应".repeat(LIMITS.pushAnswerBytesMax / 4);
      const answered = attemptOf(push, { attempt: 10, status: 500, answer });
      const silent = attemptOf(push, { attempt: 2, status: null, error: "没有回答", answer: null });
      await commit(store, { pushAttempts: [answered] });
      await commit(store, { pushAttempts: [silent] });
      assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 100), [silent, answered]);
      assert.deepEqual(await store.pushes.attempts(TENANT, "unknown", 100), []);
    });

    it("are returned up to the limit, the latest ones; the oldest beyond the limit are removed", async () => {
      await using store = await open();
      const [push, other] = [await storedPush(store), await storedPush(store)];
      const attempts = Array.from({ length: LIMITS.pushAttemptsKept + 2 }, (_, index) =>
        attemptOf(push, { attempt: index + 1 }),
      );
      await commit(store, { pushAttempts: [attemptOf(other), ...attempts.slice(0, -2)] });
      assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 1_000), attempts.slice(0, -2));
      await commit(store, { pushAttempts: attempts.slice(-2) });
      assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 1_000), attempts.slice(2));
      assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 3), attempts.slice(-3));
      assert.deepEqual(await store.pushes.attempts(TENANT, other.messageId, 3), [attemptOf(other)]);
    });

    it("are made once each, and belong to a push", async () => {
      await using store = await open();
      const push = await storedPush(store);
      await commit(store, { pushAttempts: [attemptOf(push)] });
      assert.equal(await clashOf(store, { pushAttempts: [attemptOf(push, { status: 200 })] }), "push");
      assert.equal(await clashOf(store, { pushAttempts: [attemptOf(pushOf(aNewMessage()))] }), "push");
      assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 100), [attemptOf(push)]);
    });

    it("are removed with their push when the message is retired, and with no other", async () => {
      await using store = await open();
      const gone = await storedPush(store);
      const kept = await storedPush(store);
      const waiting = await storedPush(store);
      const all = [gone, kept, waiting];
      await commit(store, { pushAttempts: all.map((push) => attemptOf(push)) });
      for (const { messageId } of [gone, kept]) await settle(store, messageId);
      await store.retention.retireMessages(TENANT, [gone.messageId, waiting.messageId], NOON_MS);
      assert.equal((await store.pushes.get(TENANT, [gone.messageId]))[0], undefined);
      assert.deepEqual(await store.pushes.attempts(TENANT, gone.messageId, 100), []);
      const filter = { tenant: TENANT, agentId: ZHIWEI, state: undefined, limit: 100 };
      for (const left of [
        await store.pushes.due(TENANT, ZHIWEI, NOON_MS, 100),
        (await store.pushes.list(filter)).toReversed(),
      ]) {
        assert.deepEqual(
          left.map(({ messageId }) => messageId),
          [kept.messageId, waiting.messageId],
        );
      }
      for (const push of [kept, waiting]) {
        assert.deepEqual(await store.pushes.attempts(TENANT, push.messageId, 100), [attemptOf(push)]);
      }
      const late = { pushes: [{ ...gone, attempts: 2 }], pushAttempts: [attemptOf(gone, { attempt: 2 })] };
      assert.equal(await clashOf(store, late), "push");
    });
  });
}
