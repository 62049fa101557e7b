import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ItemResult, LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

function codes(results: readonly ItemResult[]): readonly string[] {
  return results.map((result) => (result.ok ? "ok" : result.error.code));
}

describe("a lease", () => {
  it("names its id, attempt, worker, beginning and end", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, {
      worker: "w1",
      lease_ms: 60_000,
    });
    const [item] = messages;
    assert.deepEqual(item?.lease, {
      id: item?.lease.id,
      attempt: 1,
      worker: "w1",
      leased_at: "2026-05-08T12:00:00.000Z",
      expires_at: "2026-05-08T12:01:00.000Z",
    });
    assert.equal(item?.status, "DELIVERED");
    assert.deepEqual((await core.delivery(item?.message_id ?? "")).lease, item?.lease);
  });

  it("without lease_ms, or with null, has no end", async () => {
    await using core = await coreOnMemory();
    for (const request of [{}, { lease_ms: null }]) {
      await core.send();
      const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, request);
      assert.equal(messages[0]?.lease.expires_at, undefined);
    }
  });

  it("is on one message unless more are asked for, each with an id of its own", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 4; index += 1) await core.send({ body: `${index}` });
    const one = await core.mailboxes.lease(core.operator, ZHIWEI, {});
    const more = await core.mailboxes.lease(core.operator, ZHIWEI, { max: 100 });
    assert.deepEqual([one.messages.length, more.messages.length], [1, 3]);
    const ids = [...one.messages, ...more.messages].map(({ lease }) => lease.id);
    assert.equal(new Set(ids).size, 4);
    assert.deepEqual((await core.mailboxes.lease(core.operator, ZHIWEI, {})).messages, []);
  });

  it("is never given to two workers, however many ask at once", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 30; index += 1) await core.send();
    const taken = await Promise.all(
      Array.from({ length: 20 }, () => core.mailboxes.lease(core.operator, ZHIWEI, { max: 2 })),
    );
    const ids = taken.flatMap(({ messages }) => messages.map(({ message_id }) => message_id));
    assert.deepEqual([ids.length, new Set(ids).size], [30, 30]);
  });

  it("leaves its beginning in the journal, and its renewal not", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000, worker: "w1" });
    const head = (await core.store.journal.chain("default")).head;
    const leases = [{ message_id, lease_id }];
    await core.mailboxes.renew(core.operator, ZHIWEI, { leases, lease_ms: 2_000 });
    assert.deepEqual((await core.store.journal.chain("default")).head, head);
    const [event] = (await core.journal.events(core.operator, { type: "message.leased" })).events;
    assert.deepEqual(event?.data, { attempt: 1, lease_id, worker: "w1" });
  });

  const wrong: readonly unknown[] = [
    undefined,
    null,
    [],
    { max: 0 },
    { max: LIMITS.leaseCountMax + 1 },
    { max: "1" },
    { lease_ms: LIMITS.leaseMsMin - 1 },
    { lease_ms: LIMITS.leaseMsMax + 1 },
    { lease_ms: 1e300 },
    { wait_ms: 1.5 },
    { worker: "" },
    { worker: 7 },
  ];
  for (const request of wrong) {
    it(`is refused with ${JSON.stringify(request) ?? "nothing"}`, async () => {
      await using core = await coreOnMemory();
      await refused(core.mailboxes.lease(core.operator, ZHIWEI, request), "invalid_argument");
    });
  }
});

describe("renewing", () => {
  it("moves the end, counted from now, and shows it", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000 });
    core.clock.advance(900);
    const request = { leases: [{ message_id, lease_id }], lease_ms: 1_000 };
    const { renewed, results } = await core.mailboxes.renew(core.operator, ZHIWEI, request);
    assert.equal(renewed, 1);
    assert.equal(results[0]?.ok === true && results[0].lease?.expires_at, "2026-05-08T12:00:01.900Z");
  });

  it("keeps a late lease that no operator took away", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000 });
    core.clock.advance(5_000);
    await core.sweep.step();
    const request = { leases: [{ message_id, lease_id }], lease_ms: 1_000 };
    assert.equal((await core.mailboxes.renew(core.operator, ZHIWEI, request)).renewed, 1);
  });

  it("answers each lease for itself, also two on one message", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const first = await core.lease();
    await core.mailboxes.release(core.operator, ZHIWEI, { leases: [first] });
    const second = await core.lease();
    const leases = [
      { message_id: first.message_id, lease_id: first.lease_id },
      { message_id: second.message_id, lease_id: second.lease_id },
      { message_id: "nothing", lease_id: "nothing" },
    ];
    for (const order of [leases, leases.toReversed()]) {
      const { renewed, results } = await core.mailboxes.renew(core.operator, ZHIWEI, {
        leases: order,
        lease_ms: 1_000,
      });
      assert.equal(renewed, 1);
      const expected = ["lease_lost", "ok", "not_found"];
      assert.deepEqual(codes(results), order === leases ? expected : expected.toReversed());
    }
  });

  it("says that the task was canceled to the worker that still holds it", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    const { message_id, lease_id } = await core.lease({ lease_ms: 1_000 });
    await core.tasks.cancel(core.operator, receipt.task_id ?? "", {});
    const request = { leases: [{ message_id, lease_id }], lease_ms: 1_000 };
    assert.deepEqual(codes((await core.mailboxes.renew(core.operator, ZHIWEI, request)).results), [
      "task_canceled",
    ]);
  });
});

describe("acknowledging", () => {
  it("answers each message for itself and counts each once", async () => {
    await using core = await coreOnMemory();
    const one = (await core.send()).receipt.message_id;
    const two = (await core.send()).receipt.message_id;
    const request = { message_ids: [one, "nothing", two, one] };
    const first = await core.mailboxes.ack(core.operator, ZHIWEI, request);
    assert.equal(first.acknowledged, 2);
    assert.deepEqual(codes(first.results), ["ok", "not_found", "ok", "ok"]);
    assert.deepEqual(
      first.results.map(({ message_id }) => message_id),
      request.message_ids,
    );
    const again = await core.mailboxes.ack(core.operator, ZHIWEI, request);
    assert.equal(again.acknowledged, 0);
    assert.deepEqual(codes(again.results), ["ok", "not_found", "ok", "ok"]);
  });

  it("does not settle leased messages by its id alone", async () => {
    await using core = await coreOnMemory();
    await core.send();
    await core.send();
    const { message_id, lease_id } = await core.lease();
    const [other] = await core.inboxOf(ZHIWEI);
    const refusal = await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [message_id] });
    assert.deepEqual(codes(refusal.results), ["lease_required"]);
    const both = { message_ids: [other?.message_id ?? ""], leases: [{ message_id, lease_id }] };
    assert.equal((await core.mailboxes.ack(core.operator, ZHIWEI, both)).acknowledged, 2);
  });

  it("of nothing is nothing", async () => {
    await using core = await coreOnMemory();
    await refused(
      () => core.mailboxes.ack(core.operator, ZHIWEI, {}),
      "invalid_argument",
      /message_ids or leases/,
    );
    const none = { message_ids: [], leases: [] };
    assert.equal((await core.mailboxes.ack(core.operator, ZHIWEI, none)).acknowledged, 0);
  });

  it("is not completing: the task goes on", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ type: "request" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    assert.equal((await core.tasks.get(core.operator, receipt.task_id ?? "")).state, "submitted");
    await core.tasks.complete(core.operator, receipt.task_id ?? "", { text: "好了" });
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("is refused for more than its limit", async () => {
    await using core = await coreOnMemory();
    const message_ids = Array.from({ length: LIMITS.ackMax + 1 }, (_, index) => `m${index}`);
    await refused(core.mailboxes.ack(core.operator, ZHIWEI, { message_ids }), "too_large", /1000 items/);
    await refused(core.mailboxes.ack(core.operator, ZHIWEI, undefined), "invalid_argument");
    await refused(core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: "m1" }), "invalid_argument");
    await refused(
      core.mailboxes.ack(core.operator, ZHIWEI, { leases: [{ message_id: "m" }] }),
      "invalid_argument",
    );
  });
});

describe("giving back and giving up", () => {
  it("answers each lease for itself", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { message_id, lease_id } = await core.lease();
    const leases = [
      { message_id, lease_id },
      { message_id, lease_id: "another" },
      { message_id: "nothing", lease_id },
    ];
    const { released, results } = await core.mailboxes.release(core.operator, ZHIWEI, { leases });
    assert.equal(released, 1);
    assert.deepEqual(codes(results), ["ok", "lease_lost", "not_found"]);
    const again = await core.mailboxes.release(core.operator, ZHIWEI, { leases: leases.slice(0, 1) });
    assert.deepEqual(codes(again.results), ["wrong_state"]);
  });

  it("for good makes the message dead and tells its sender why", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send({ subject: "急事" });
    const { message_id, lease_id } = await core.lease();
    const { delivery } = await core.mailboxes.fail(core.operator, ZHIWEI, {
      message_id,
      lease_id,
      reason: "看不懂",
    });
    assert.deepEqual([delivery?.state, delivery?.reason, delivery?.lease], ["dead", "看不懂", undefined]);
    const [notice] = await core.inboxOf(LULU);
    assert.equal(notice?.sender_agent_id, "postmaster@relay");
    assert.match(notice?.message.body ?? "", /急事.*看不懂/s);
    assert.equal(notice?.message.reply_to, receipt.message_id);
  });

  it("needs a reason", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    for (const reason of ["", "  \n", undefined]) {
      const request = { message_id: receipt.message_id, reason };
      await refused(core.mailboxes.fail(core.operator, ZHIWEI, request), "invalid_argument");
    }
    const long = { message_id: receipt.message_id, reason: "x".repeat(LIMITS.reasonCharsMax + 1) };
    await refused(core.mailboxes.fail(core.operator, ZHIWEI, long), "too_large");
  });
});
