import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, PUSH_STATES } from "@a2a-relay/protocol";
import { mailboxTopic, PUSH_ENDPOINTS_TOPIC } from "../src/core/ports/change-feed.ts";
import type { Changes, RelayStore } from "../src/core/ports/relay-store.ts";
import type { PushEndpoint, PushFilter } from "../src/core/ports/pushes.ts";
import { NOON_MS } from "./fake-clock.ts";
import { describePushAttempts } from "./push-attempts.contract.ts";
import {
  anEvent,
  aNewMessage,
  aNewPushEndpoint,
  aSend,
  attemptOf,
  clashOf,
  commit,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  pushOf,
  readIds,
  send,
  settle,
  storedPush,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";

const LONG_MS = 30_000;

async function storedEndpoint(store: RelayStore, said: Partial<PushEndpoint> = {}): Promise<PushEndpoint> {
  const endpoint = aNewPushEndpoint(said);
  await commit(store, { tenant: endpoint.tenant, pushEndpoints: [endpoint] });
  const stored = await store.endpoints.get(endpoint.tenant, endpoint.agentId);
  assert.ok(stored);
  return stored;
}

async function dueIds(store: RelayStore, nowMs = NOON_MS, limit = 100): Promise<readonly string[]> {
  return (await store.pushes.due(TENANT, ZHIWEI, nowMs, limit)).map(({ messageId }) => messageId);
}

async function listedIds(store: RelayStore, said: Partial<PushFilter> = {}): Promise<readonly string[]> {
  const filter = { tenant: TENANT, agentId: ZHIWEI, state: undefined, limit: 100, ...said };
  return (await store.pushes.list(filter)).map(({ messageId }) => messageId);
}

export function describePushes(open: OpenStore): void {
  describeEndpoints(open);
  describePushRecords(open);
  describeDuePushes(open);
  describePushAttempts(open);
}

function describeEndpoints(open: OpenStore): void {
  describe("push endpoints", () => {
    it("are given back with every field, in any script", async () => {
      await using store = await open();
      const full = aNewPushEndpoint({
        url: "https://知微.example/收信?a=1",
        isNotice: true,
        acknowledges: false,
        secret: "whsec_新",
        oldSecret: "whsec_旧",
        oldSecretUntilMs: NOON_MS + 1,
        state: "disabled",
        reason: "它说：不再来",
        failures: 7,
        openUntilMs: NOON_MS + 2,
        afterPosition: Number.MAX_SAFE_INTEGER,
      });
      const plain = aNewPushEndpoint({ agentId: LULU, acknowledges: true });
      await commit(store, { pushEndpoints: [full, plain] });
      assert.deepEqual(await store.endpoints.get(TENANT, ZHIWEI), { ...full, version: 1 });
      assert.deepEqual(await store.endpoints.get(TENANT, LULU), { ...plain, version: 1 });
      assert.equal(await store.endpoints.get(TENANT, "无人@host" as AgentId), undefined);
    });

    it("are changed by version, and a stale change is refused", async () => {
      await using store = await open();
      const before = await storedEndpoint(store);
      const change = { state: "disabled", reason: "gone", failures: 3, afterPosition: 9 } as const;
      await commit(store, { pushEndpoints: [{ ...before, ...change }] });
      const changed = { ...before, ...change, version: before.version + 1 };
      assert.deepEqual(await store.endpoints.get(TENANT, ZHIWEI), changed);
      assert.equal(await clashOf(store, { pushEndpoints: [before] }), "push_endpoint");
      assert.equal(await clashOf(store, { pushEndpoints: [aNewPushEndpoint()] }), "push_endpoint");
      const unknown = aNewPushEndpoint({ agentId: LULU, version: 1 });
      assert.equal(await clashOf(store, { pushEndpoints: [unknown] }), "push_endpoint");
      assert.deepEqual(await store.endpoints.get(TENANT, ZHIWEI), changed);
    });

    it("are listed while they are active, of all tenants, page by page in a fixed order", async () => {
      await using store = await open();
      const agents = ["a@host", "b@host", "知微@host"] as AgentId[];
      const expected: string[] = [];
      for (const tenant of [TENANT, OTHER_TENANT]) {
        for (const agentId of agents) {
          await storedEndpoint(store, { tenant, agentId });
          expected.push(`${tenant} ${agentId}`);
        }
        await storedEndpoint(store, { tenant, agentId: "c@host" as AgentId, state: "disabled" });
      }
      const all = await store.endpoints.list({ state: "active", after: undefined, limit: 100 });
      const found = all.map(({ tenant, agentId }) => `${tenant} ${agentId}`);
      assert.deepEqual(found.toSorted(), expected.toSorted());
      const paged: PushEndpoint[] = [];
      for (let count = 0; count < all.length; count += 2) {
        paged.push(...(await store.endpoints.list({ state: "active", after: paged.at(-1), limit: 2 })));
      }
      assert.deepEqual(paged, all);
      assert.deepEqual(await store.endpoints.list({ state: "active", after: paged.at(-1), limit: 2 }), []);
    });

    it("leave the list when they are disabled, and the next page is found without them", async () => {
      await using store = await open();
      const first = await storedEndpoint(store, { agentId: "a@host" as AgentId });
      const second = await storedEndpoint(store, { agentId: "b@host" as AgentId });
      await commit(store, { pushEndpoints: [{ ...first, state: "disabled" }] });
      assert.deepEqual(await store.endpoints.list({ state: "active", after: undefined, limit: 10 }), [
        second,
      ]);
      assert.deepEqual(await store.endpoints.list({ state: "active", after: first, limit: 10 }), [second]);
      assert.deepEqual(await store.endpoints.list({ state: "active", after: second, limit: 10 }), []);
      await commit(store, { pushEndpoints: [{ ...first, version: 2 }] });
      assert.equal((await store.endpoints.list({ state: "active", after: undefined, limit: 10 })).length, 2);
    });

    it("wake the readers of their topic, once they can be read, whatever the tenant", async () => {
      await using store = await open();
      using watch = store.feed.watch(PUSH_ENDPOINTS_TOPIC);
      const woken = watch.changed({ timeoutMs: LONG_MS });
      const endpoint = aNewPushEndpoint({ tenant: OTHER_TENANT });
      await commit(store, { tenant: OTHER_TENANT, pushEndpoints: [endpoint] });
      assert.equal(await woken, true);
      const stored = await store.endpoints.get(OTHER_TENANT, ZHIWEI);
      assert.ok(stored);
      await commit(store, { tenant: OTHER_TENANT, pushEndpoints: [{ ...stored, state: "disabled" }] });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
    });

    it("that are disabled and have left pushes behind are found in every tenant, page by page", async () => {
      await using store = await open();
      for (const tenant of [TENANT, OTHER_TENANT]) {
        for (const [agentId, state] of [
          [LULU, "disabled"],
          [ZHIWEI, "disabled"],
          ["working@桌面" as AgentId, "active"],
          ["done@桌面" as AgentId, "disabled"],
        ] as const) {
          await commit(store, { tenant, pushEndpoints: [aNewPushEndpoint({ tenant, agentId, state })] });
          const isDone = agentId.startsWith("done");
          const said = isDone ? ({ agentId, state: "dropped", nextAtMs: null } as const) : { agentId };
          await storedPush(store, said, { tenant, recipient: agentId });
        }
      }
      const found: PushEndpoint[] = [];
      for (let isOver = false; !isOver;) {
        const [next] = await store.endpoints.list({ state: "disabled", after: found.at(-1), limit: 1 });
        if (next === undefined) isOver = true;
        else found.push(next);
      }
      assert.deepEqual(await store.endpoints.list({ state: "disabled", after: undefined, limit: 10 }), found);
      const names = found.map(({ tenant, agentId }) => [tenant, agentId]);
      const expected = [TENANT, OTHER_TENANT].toSorted().flatMap((tenant) => [
        [tenant, LULU],
        [tenant, ZHIWEI],
      ]);
      assert.deepEqual(names, expected);
    });

    it("wake no reader when the change is refused, or is only progress, a push or a message", async () => {
      await using store = await open();
      using watch = store.feed.watch(PUSH_ENDPOINTS_TOPIC);
      using mailbox = store.feed.watch(mailboxTopic(TENANT, LULU));
      const endpoint = await storedEndpoint(store);
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
      assert.equal(await clashOf(store, { pushEndpoints: [{ ...endpoint, version: 7 }] }), "push_endpoint");
      const existing = await send(store);
      assert.equal(await clashOf(store, { pushEndpoints: [endpoint], messages: [existing] }), "message_id");
      await storedPush(store);
      await commit(store, { pushProgress: [{ ...endpoint, afterPosition: 5 }] });
      assert.equal(await watch.changed({ timeoutMs: 0 }), false);
      const moved = await store.endpoints.get(TENANT, ZHIWEI);
      assert.equal(moved?.afterPosition, 5);
      assert.equal(await clashOf(store, { pushProgress: [endpoint] }), "push_endpoint");
      await commit(store, { pushEndpoints: [moved] });
      assert.equal(await watch.changed({ timeoutMs: LONG_MS }), true);
      assert.equal(await mailbox.changed({ timeoutMs: 0 }), false);
    });
  });
}

function describePushRecords(open: OpenStore): void {
  describe("pushes", () => {
    it("are given back with every field, in every state", async () => {
      await using store = await open();
      const counts = { attempts: 5, attemptsBefore: 4, createdAtMs: 3 };
      const said = { reason: "连接被拒绝", ...counts, nextAtMs: null, sentAtMs: NOON_MS };
      for (const state of PUSH_STATES) {
        const message = await send(store);
        const [plain, full] = [pushOf(message), pushOf(message, { ...said, state, version: 1 })];
        await commit(store, { pushes: [plain] });
        assert.deepEqual((await store.pushes.get(TENANT, [message.id]))[0], { ...plain, version: 1 });
        await commit(store, { pushes: [full] });
        assert.deepEqual((await store.pushes.get(TENANT, [message.id]))[0], { ...full, version: 2 });
      }
      assert.equal((await store.pushes.get(TENANT, ["unknown"]))[0], undefined);
    });

    it("are changed by version, so that only one of two writers wins", async () => {
      await using store = await open();
      const before = await storedPush(store);
      const outcomes = await Promise.all([
        clashOf(store, { pushes: [{ ...before, state: "delivered", nextAtMs: null }] }),
        clashOf(store, { pushes: [{ ...before, state: "failed", nextAtMs: null }] }),
      ]);
      assert.deepEqual(outcomes.toSorted(), ["none, it was committed", "push"]);
      const [after] = await store.pushes.get(TENANT, [before.messageId]);
      assert.deepEqual([after?.state, after?.version], [outcomes[0] === "push" ? "failed" : "delivered", 2]);
      assert.equal(await clashOf(store, { pushes: [{ ...before, version: 0 }] }), "push");
    });

    it("are refused for an unknown message, also for one that was just retired", async () => {
      await using store = await open();
      assert.equal(await clashOf(store, { pushes: [pushOf(aNewMessage())] }), "push");
      const message = await send(store);
      await settle(store, message.id);
      await store.retention.retireMessages(TENANT, [message.id], NOON_MS);
      assert.equal(await clashOf(store, { pushes: [pushOf(message)] }), "push");
      const foreign = await send(store, { tenant: OTHER_TENANT });
      assert.equal(await clashOf(store, { pushes: [pushOf(foreign, { tenant: TENANT })] }), "push");
    });

    it("are written together with the message and the cursor, or not at all", async () => {
      await using store = await open();
      const endpoint = await storedEndpoint(store);
      const sent = aSend();
      const push = pushOf(sent.messages[0]);
      await commit(store, { ...sent, pushes: [push], pushEndpoints: [{ ...endpoint, afterPosition: 5 }] });
      assert.ok((await store.pushes.get(TENANT, [push.messageId]))[0]);
      assert.equal((await store.endpoints.get(TENANT, ZHIWEI))?.afterPosition, 5);
    });

    for (const clash of ["push", "push_endpoint", "nonce", "message_id"] as const) {
      it(`write nothing at all when another caller was faster: ${clash}`, async () => {
        await using store = await open();
        const nonce = { keyId: "key", nonce: "用过", expiresAtMs: NOON_MS };
        const fresh = { ...nonce, nonce: "没用过" };
        const endpoint = await storedEndpoint(store);
        const existing = await storedPush(store);
        const [stored] = await store.messages.get(TENANT, [existing.messageId]);
        assert.ok(stored);
        await commit(store, { nonces: [nonce] });
        const sent = aSend();
        const [message] = sent.messages;
        const stale = { ...existing, version: 7 };
        const bad: Record<typeof clash, Partial<Changes>> = {
          push: { pushes: [pushOf(message), stale] },
          push_endpoint: { pushEndpoints: [endpoint, aNewPushEndpoint({ agentId: LULU, version: 3 })] },
          nonce: { nonces: [fresh, nonce] },
          message_id: { messages: [message, stored] },
        };
        const head = (await store.journal.chain(TENANT)).head;
        const changes: Changes = {
          ...sent,
          events: [anEvent({ messageId: message.id })],
          pushEndpoints: [{ ...endpoint, afterPosition: 9 }],
          pushes: [pushOf(message), { ...existing, state: "delivered" }],
          pushAttempts: [attemptOf(existing), attemptOf(pushOf(message))],
          nonces: [fresh],
          ...bad[clash],
        };
        assert.equal(await clashOf(store, changes), clash);
        assert.deepEqual(await store.endpoints.get(TENANT, ZHIWEI), endpoint);
        assert.deepEqual((await store.pushes.get(TENANT, [existing.messageId]))[0], existing);
        assert.deepEqual(await store.pushes.attempts(TENANT, existing.messageId, 100), []);
        assert.equal((await store.pushes.get(TENANT, [message.id]))[0], undefined);
        assert.deepEqual(await readIds(store), [existing.messageId]);
        assert.deepEqual((await store.journal.chain(TENANT)).head, head);
        await commit(store, { nonces: [fresh] });
      });
    }

    it("are listed newest first, of one state or of all, as many as asked for", async () => {
      await using store = await open();
      const ids: string[] = [];
      for (const [index, state] of [...PUSH_STATES, ...PUSH_STATES].entries()) {
        // Two of each moment: the newer message first.
        const createdAtMs = NOON_MS + Math.floor(index / 2);
        ids.unshift((await storedPush(store, { state, createdAtMs })).messageId);
      }
      await storedPush(store, { agentId: LULU }, { recipient: LULU });
      assert.deepEqual(await listedIds(store), ids);
      assert.deepEqual(await listedIds(store, { limit: 3 }), ids.slice(0, 3));
      const failed = PUSH_STATES.toReversed().indexOf("failed");
      const expected = [ids[failed], ids[failed + PUSH_STATES.length]];
      assert.deepEqual(await listedIds(store, { state: "failed" }), expected);
      assert.deepEqual(await listedIds(store, { state: "failed", limit: 1 }), expected.slice(0, 1));
      assert.deepEqual(await listedIds(store, { agentId: "无人@host" as AgentId }), []);
    });
  });
}

function describeDuePushes(open: OpenStore): void {
  describe("due pushes", () => {
    it("are those whose time has come to the very millisecond, the longest due first", async () => {
      await using store = await open();
      const late = await storedPush(store, { nextAtMs: NOON_MS });
      const early = await storedPush(store, { nextAtMs: NOON_MS - 10 });
      const equal = await storedPush(store, { nextAtMs: NOON_MS });
      const future = await storedPush(store, { nextAtMs: NOON_MS + 1 });
      const due = [early.messageId, late.messageId, equal.messageId];
      assert.deepEqual(await dueIds(store), due);
      assert.deepEqual(await dueIds(store, NOON_MS, 2), due.slice(0, 2));
      assert.deepEqual(await dueIds(store, NOON_MS + 1), [...due, future.messageId]);
      assert.deepEqual(await store.pushes.due(TENANT, LULU, NOON_MS + 1, 10), []);
      assert.deepEqual((await store.pushes.due(TENANT, ZHIWEI, NOON_MS, 1))[0], early);
    });

    it("come in the order of their mailbox where they are due at the same time, whatever their ids", async () => {
      await using store = await open();
      const third = await storedPush(store, { position: 30 });
      const first = await storedPush(store, { position: 10 });
      const second = await storedPush(store, { position: 20 });
      assert.deepEqual(await dueIds(store), [first.messageId, second.messageId, third.messageId]);
    });

    it("are pending ones only, and again when a new round begins", async () => {
      await using store = await open();
      for (const state of PUSH_STATES) {
        if (state !== "pending") await storedPush(store, { state, nextAtMs: NOON_MS });
      }
      const push = await storedPush(store);
      await commit(store, { pushes: [{ ...push, state: "failed", attempts: 4, nextAtMs: null }] });
      assert.deepEqual(await dueIds(store), []);
      assert.equal(await store.pushes.countPending(TENANT, ZHIWEI), 0);
      const [failed] = await store.pushes.get(TENANT, [push.messageId]);
      assert.ok(failed);
      await commit(store, {
        pushes: [{ ...failed, state: "pending", attemptsBefore: 4, nextAtMs: NOON_MS }],
      });
      assert.deepEqual(await dueIds(store), [push.messageId]);
    });

    it("are counted for each agent", async () => {
      await using store = await open();
      assert.equal(await store.pushes.countPending(TENANT, ZHIWEI), 0);
      const first = await storedPush(store, { nextAtMs: NOON_MS + 5 });
      await storedPush(store, { nextAtMs: NOON_MS + 9 });
      await storedPush(store, { nextAtMs: NOON_MS + 1 }, { recipient: LULU });
      assert.equal(await store.pushes.countPending(TENANT, ZHIWEI), 2);
      await commit(store, { pushes: [{ ...first, nextAtMs: NOON_MS + 30 }] });
      assert.equal(await store.pushes.countPending(TENANT, LULU), 1);
    });
  });
}
