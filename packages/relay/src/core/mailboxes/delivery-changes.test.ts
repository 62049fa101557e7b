import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, ZHIWEI } from "../../../testing/core-on-memory.ts";

async function sendMany(core: CoreOnMemory, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let sent = 0; sent < count; sent += 1) ids.push((await core.send()).receipt.message_id);
  return ids;
}

async function countOf(core: CoreOnMemory, type: string): Promise<number> {
  return (await core.journal.events(core.operator, { type, limit: 500 })).events.length;
}

describe("acknowledging many messages at once", () => {
  it("settles all of it, each with its own event", async () => {
    await using core = await coreOnMemory();
    const message_ids = await sendMany(core, 250);
    const { acknowledged, results } = await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids });
    assert.equal(acknowledged, 250);
    assert.deepEqual(
      results.map(({ message_id, ok }) => [message_id, ok]),
      message_ids.map((id) => [id, true]),
    );
    assert.equal(await countOf(core, "message.acknowledged"), 250);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("counts what is there twice once, and settles the rest beside what is refused", async () => {
    await using core = await coreOnMemory();
    const [one = "", two = "", three = ""] = await sendMany(core, 3);
    const { message_id } = await core.lease();
    assert.equal(message_id, one);
    const message_ids = [one, two, two, "none", three, two];
    const { acknowledged, results } = await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids });
    assert.equal(acknowledged, 2);
    assert.deepEqual(
      results.map((result) => (result.ok ? true : result.error.code)),
      ["lease_required", true, true, "not_found", true, true],
    );
    assert.equal(await countOf(core, "message.acknowledged"), 2);
  });

  it("settles what several ask for at the same time once", async () => {
    await using core = await coreOnMemory();
    const message_ids = await sendMany(core, 120);
    const answers = await Promise.all(
      [0, 40, 80].map((start) =>
        core.mailboxes.ack(core.operator, ZHIWEI, {
          message_ids: [...message_ids.slice(start), ...message_ids.slice(0, start)],
        }),
      ),
    );
    const acknowledged = answers.reduce((sum, answer) => sum + answer.acknowledged, 0);
    assert.equal(acknowledged, 120);
    assert.ok(answers.every(({ results }) => results.every(({ ok }) => ok)));
    assert.equal(await countOf(core, "message.acknowledged"), 120);
  });

  it("gives back many leases as well", async () => {
    await using core = await coreOnMemory();
    await sendMany(core, LIMITS.leaseCountMax);
    const { messages } = await core.mailboxes.lease(core.operator, ZHIWEI, { max: LIMITS.leaseCountMax });
    const leases = messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id }));
    const { released } = await core.mailboxes.release(core.operator, ZHIWEI, {
      leases: [...leases, { message_id: leases[0]?.message_id ?? "", lease_id: "another" }],
    });
    assert.equal(released, LIMITS.leaseCountMax);
    assert.equal((await core.inboxOf(ZHIWEI)).length, LIMITS.leaseCountMax);
  });
});
