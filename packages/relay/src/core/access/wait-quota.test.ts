import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, operatorOf, type Principal, rootOperator } from "./principal.ts";
import { mailboxTopic } from "../ports/change-feed.ts";
import { WaitQuota } from "./wait-quota.ts";

const MAX = LIMITS.waitsOfCallerMax;
const TOPIC = mailboxTopic("default", ZHIWEI);

describe("the wait quota", () => {
  it("limits one agent over all its keys, and no other caller", async () => {
    await using core = await coreOnMemory();
    const waitQuota = new WaitQuota(core);
    using all = new DisposableStack();
    const zhiwei = (keyId: string): Principal => ({ ...core.zhiwei, keyId });
    for (let count = 0; count < MAX; count += 1) all.use(waitQuota.watch(zhiwei(`key_${count % 3}`), TOPIC));
    await refused(
      () => waitQuota.watch(zhiwei("key_new"), TOPIC),
      "resource_exhausted",
      /^you wait 1000 times already, .* end some/,
    );
    for (const other of [core.lulu, agentOf("acme", ZHIWEI), core.operator, rootOperator()]) {
      all.use(waitQuota.watch(other, TOPIC));
    }
  });

  it("frees a slot once when a wait ends, even if it is disposed twice", async () => {
    await using core = await coreOnMemory();
    const waitQuota = new WaitQuota(core);
    using all = new DisposableStack();
    const first = waitQuota.watch(core.lulu, TOPIC);
    for (let count = 1; count < MAX; count += 1) all.use(waitQuota.watch(core.lulu, TOPIC));
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    all.use(waitQuota.watch(core.lulu, TOPIC));
    await refused(() => waitQuota.watch(core.lulu, TOPIC), "resource_exhausted");
  });

  it("limits each key of an operator, and not the relay's operator", async () => {
    await using core = await coreOnMemory();
    const waitQuota = new WaitQuota(core);
    using all = new DisposableStack();
    const keyed = { ...operatorOf("default"), keyId: "key_1" };
    for (let count = 0; count < MAX; count += 1) {
      all.use(waitQuota.watch(keyed, TOPIC));
      all.use(waitQuota.watch(rootOperator(), TOPIC));
    }
    await refused(() => waitQuota.watch(keyed, TOPIC), "resource_exhausted");
    all.use(waitQuota.watch({ ...keyed, keyId: "key_2" }, TOPIC));
    all.use(waitQuota.watch(rootOperator(), TOPIC));
  });

  it("counts streams and long polls together, and does not limit plain reads", async () => {
    await using core = await coreOnMemory();
    const left = new AbortController();
    for (let count = 0; count < MAX / 2; count += 1) await core.mailboxes.follow(core.lulu, LULU, {}, left);
    const waiting = Array.from({ length: MAX / 2 }, () =>
      core.mailboxes.read(core.lulu, LULU, { wait_ms: 60_000 }, left),
    );
    await refused(core.mailboxes.follow(core.lulu, LULU, {}, left), "resource_exhausted");
    await refused(core.mailboxes.lease(core.lulu, LULU, { wait_ms: 1 }, left), "resource_exhausted");
    assert.deepEqual((await core.mailboxes.read(core.lulu, LULU, {})).messages, []);
    const follow = await core.mailboxes.follow(core.zhiwei, ZHIWEI, {}, left);
    assert.ok(follow);
    left.abort();
    await Promise.all(waiting);
    await core.mailboxes.lease(core.lulu, LULU, { wait_ms: 1 });
  });

  it("limits waits for the journal by an operator's key", async () => {
    await using core = await coreOnMemory();
    const keyed = { ...core.operator, keyId: "key_1" };
    const left = new AbortController();
    for (let count = 0; count < MAX; count += 1) await core.journal.follow(keyed, {}, left);
    await refused(core.journal.follow(keyed, {}, left), "resource_exhausted");
    await refused(core.journal.events(keyed, { wait_ms: 1 }, left), "resource_exhausted");
    assert.ok((await core.journal.events(keyed, {})).events.length > 0);
    left.abort();
  });
});
