import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { anEvent } from "../../../testing/store-builders.ts";
import { coreOnMemory } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { combine, decideAndCommit } from "./commit-retry.ts";
import { parseCursor } from "./cursor.ts";
import { Readiness } from "../journal/journal-service.ts";

describe("deciding and committing", () => {
  it("decides anew from what is there now, and is told what clashed", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    const [stale] = await core.store.deliveries.get(DEFAULT_TENANT, [receipt.message_id]);
    assert.ok(stale);
    await core.mailboxes.read(core.operator, "zhiwei", {});
    const clashes: unknown[] = [];
    const answer = await decideAndCommit(core.store, async (clash) => {
      clashes.push(clash);
      const fresh =
        clash === undefined
          ? stale
          : (await core.store.deliveries.get(DEFAULT_TENANT, [receipt.message_id]))[0];
      return {
        changes: { tenant: DEFAULT_TENANT, events: [], deliveries: fresh === undefined ? [] : [fresh] },
        answer: "done",
      };
    });
    assert.deepEqual([answer, clashes], ["done", [undefined, "delivery"]]);
  });

  it("writes nothing when nothing has to change", async () => {
    await using core = await coreOnMemory();
    const head = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    assert.equal(await decideAndCommit(core.store, async () => ({ changes: undefined, answer: 7 })), 7);
    assert.deepEqual((await core.store.journal.chain(DEFAULT_TENANT)).head, head);
  });

  it("gives up after a while and asks to try again", async () => {
    await using core = await coreOnMemory();
    const { receipt } = await core.send();
    const [delivery] = await core.store.deliveries.get(DEFAULT_TENANT, [receipt.message_id]);
    assert.ok(delivery);
    let tries = 0;
    const never = decideAndCommit(core.store, async () => {
      tries += 1;
      const changes = { tenant: DEFAULT_TENANT, events: [], deliveries: [{ ...delivery, version: 99 }] };
      return { changes, answer: undefined };
    });
    await refused(never, "unavailable", /try again/);
    assert.equal(tries, 20);
  });

  it("combines the parts of one act in their order, and changes none of them", () => {
    const [first, second, third] = ["一", "二", "三"].map((actor) => anEvent({ actor }));
    assert.ok(first && second && third);
    const parts = [
      { events: [first], tasks: [] },
      {},
      { events: [second] },
      { sendKeys: [], events: [third] },
    ];
    const before = structuredClone(parts);
    assert.deepEqual(combine("t", parts), { tenant: "t", events: [first, second, third] });
    assert.deepEqual(parts, before);
  });

  it("combines nothing into a change without events", () => {
    assert.deepEqual(combine("t", [{ tasks: [] }, {}]), { tenant: "t", events: [] });
  });
});

describe("a cursor", () => {
  it("is a position, and absent means from the beginning", () => {
    for (const [input, position] of [
      [undefined, 0],
      ["", 0],
      ["0", 0],
      ["42", 42],
      ["9007199254740991", 2 ** 53 - 1],
    ] as const) {
      assert.equal(parseCursor(input, "since"), position);
    }
  });

  for (const input of ["-1", "1.5", "1e3", " 1", "0x10", "9007199254740993", "99999999999999999", "知"]) {
    it(`is not ${JSON.stringify(input)}`, async () => {
      await refused(() => parseCursor(input, "since"), "invalid_argument", /^since: /);
    });
  }
});

describe("readiness", () => {
  it("asks the store once a second, however many ask", async () => {
    await using core = await coreOnMemory();
    const { clock } = core;
    let probes = 0;
    const probe = async (): Promise<void> => {
      probes += 1;
    };
    const store = Object.assign(Object.create(core.store) as typeof core.store, { probe });
    const readiness = new Readiness({ store, clock });
    await Promise.all([readiness.check(), readiness.check()]);
    clock.advance(999);
    await readiness.check();
    assert.equal(probes, 1);
    clock.advance(1);
    await readiness.check();
    assert.equal(probes, 2);
    clock.advance(-5_000);
    await readiness.check();
    assert.equal(probes, 3, "a clock that steps back does not freeze the answer");
  });

  it("is a real write that leaves no trace in the journal, and fails with the store", async () => {
    await using core = await coreOnMemory();
    const head = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    await core.readiness.check();
    assert.deepEqual((await core.store.journal.chain(DEFAULT_TENANT)).head, head);
    await core.store[Symbol.asyncDispose]();
    core.clock.advance(1_000);
    await refused(core.readiness.check(), "unavailable");
  });
});
