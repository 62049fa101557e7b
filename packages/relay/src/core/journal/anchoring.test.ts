import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, DAY_MS } from "../../../testing/core-on-memory.ts";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { MemoryAnchors } from "../../../testing/memory-anchors.ts";
import { DEFAULT_TENANT, operatorOf } from "../access/principal.ts";
import type { Anchor } from "../ports/archive.ts";
import type { ChainHead } from "../ports/journal.ts";

const OTHER = "乙";

async function head(core: CoreOnMemory, tenant = DEFAULT_TENANT): Promise<ChainHead> {
  return (await core.store.journal.chain(tenant)).head;
}

/** Events of a tenant without a key: only its anchors know of it. */
async function happen(core: CoreOnMemory, tenant: string, count: number): Promise<void> {
  const noSubject = { agentId: null, messageId: null, taskId: null, threadId: null };
  const event = { type: "retry.scanned", atMs: NOON_MS, actor: "operator", ...noSubject, data: {} } as const;
  for (let index = 0; index < count; index += 1) await core.store.commit({ tenant, events: [event] });
}

function other(anchor: Anchor | undefined, changes: Partial<Anchor>): Anchor {
  assert.ok(anchor);
  return { ...anchor, ...changes };
}

describe("keeping anchors", () => {
  it("writes the head of a chain, and nothing while it does not grow", async () => {
    await using core = await coreOnMemory();
    await core.anchoring.keepAll();
    const first = { tenant: DEFAULT_TENANT, ...(await head(core)), atMs: core.clock.nowMs() };
    core.clock.advance(1_000);
    await core.anchoring.keepAll();
    assert.deepEqual(core.anchors.kept, [first]);
    await core.send();
    await core.anchoring.keepAll();
    const second = { tenant: DEFAULT_TENANT, ...(await head(core)), atMs: core.clock.nowMs() };
    assert.deepEqual(core.anchors.kept, [first, second]);
  });

  it("keeps each once and in order under concurrent calls", async () => {
    await using core = await coreOnMemory();
    await Promise.all([core.anchoring.keepAll(), core.anchoring.keep(DEFAULT_TENANT), core.send()]);
    await Promise.all([core.anchoring.keepAll(), core.anchoring.keepAll()]);
    const seqs = core.anchors.kept.map(({ seq }) => seq);
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].toSorted((one, another) => one - another),
    );
    assert.equal(seqs.at(-1), (await head(core)).seq);
  });

  it("goes on when retention at another relay, which anchors too, has passed its own newest anchor", async () => {
    for (const areAll of [false, true]) {
      await using core = await coreOnMemory();
      await core.anchoring.keepAll();
      const anchors = new MemoryAnchors({ areAll });
      const beside = core.beside({ anchors });
      await beside.anchoring.keepAll();
      await core.send();
      await core.anchoring.keepAll();
      await core.store.retention.retireEvents(DEFAULT_TENANT, await head(core));
      await core.send();
      const { problem } = await beside.journal.verify(core.operator);
      const verdict = beside.anchoring.keepAll().then(
        () => "kept",
        () => "stopped",
      );
      const expected = areAll ? [true, "stopped"] : [false, "kept"];
      assert.deepEqual([problem !== undefined, await verdict], expected);
    }
  });

  it("stops for a chain that lacks anchored events", async () => {
    await using core = await coreOnMemory();
    await core.anchoring.keepAll();
    await happen(core, OTHER, 2);
    const [seen] = core.anchors.kept;
    const { seq } = await head(core);
    for (const [lie, words] of [
      [
        other(seen, { seq: seq + 3 }),
        /tenant default: the anchor of 2026-\S+ has seen event \d+, .*2 events are missing/,
      ],
      [other(seen, { hash: "f".repeat(64) }), /tenant default: .*were rewritten/],
    ] as const) {
      core.anchors.kept = [lie];
      await core.send();
      await assert.rejects(core.anchoring.keepAll(), words);
      await assert.rejects(core.anchoring.keep(DEFAULT_TENANT), words);
      assert.deepEqual(core.anchors.kept, [lie]);
    }
    await core.anchoring.keep(OTHER);
    assert.equal(core.anchors.kept.at(-1)?.tenant, OTHER);
    await happen(core, OTHER, 1);
    await assert.rejects(core.anchoring.keepAll(), /tenant default/);
    assert.equal(core.anchors.kept.at(-1)?.seq, 3, "the other tenant is none the worse for it");
  });

  it("notices a tenant that was deleted from the store", async () => {
    await using core = await coreOnMemory();
    core.anchors.kept = [{ tenant: "甲", seq: 5, hash: "a".repeat(64), atMs: NOON_MS }];
    await assert.rejects(core.anchoring.keepAll(), /tenant 甲: .* 5 events are missing/);
  });
});

describe("verifying with anchors", () => {
  it("reports the newest anchor and its time", async () => {
    await using core = await coreOnMemory();
    assert.equal((await core.journal.verify(core.operator)).anchor, undefined);
    const { seq, hash } = await head(core);
    await core.anchoring.keepAll();
    await core.send();
    const { ok, anchor } = await core.journal.verify(core.operator);
    assert.equal(ok, true);
    assert.deepEqual(anchor, { seq, hash, at: "2026-05-08T12:00:00.000Z" });
  });

  it("finds a chain that is shorter than an anchor says, and by how many events", async () => {
    await using core = await coreOnMemory();
    await core.anchoring.keepAll();
    const { seq } = await head(core);
    const [seen] = core.anchors.kept;
    core.anchors.kept.push(other(seen, { seq: seq + 1 }), other(seen, { seq: seq + 40 }));
    const { ok, problem, anchor } = await core.journal.verify(core.operator);
    assert.equal(ok, false);
    assert.equal(
      problem,
      `the anchor of 2026-05-08T12:00:00.000Z has seen event ${seq + 40}, but the chain ends with event ${seq}: 40 events are missing`,
    );
    assert.equal(anchor?.seq, seq + 40);
  });

  it("finds rewritten events and their range, even if later anchors fit", async () => {
    await using core = await coreOnMemory();
    const { seq } = await head(core);
    for (let round = 0; round < 3; round += 1) {
      await core.send();
      await core.anchoring.keepAll();
    }
    const [first, second, third] = core.anchors.kept;
    core.anchors.kept = [other(first, {}), other(second, { hash: "f".repeat(64) }), other(third, {})];
    const { ok, problem } = await core.journal.verify(core.operator);
    assert.equal(ok, false);
    const events = `events from ${seq + 2} to ${seq + 2} were rewritten, or cut off and replaced`;
    assert.match(problem ?? "", new RegExp(`has seen event ${seq + 2} with another hash: ${events}$`));
  });

  it("finds anchors that were added by hand", async () => {
    await using core = await coreOnMemory();
    await core.anchoring.keepAll();
    await core.send();
    await core.anchoring.keepAll();
    core.anchors.kept.reverse();
    const { ok, problem } = await core.journal.verify(core.operator);
    assert.equal(ok, false);
    assert.match(problem ?? "", /the anchors were edited/);
  });

  it("keeps the tenants apart", async () => {
    await using core = await coreOnMemory();
    await happen(core, OTHER, 3);
    await core.anchoring.keep(OTHER);
    await core.anchoring.keepAll();
    core.anchors.kept = core.anchors.kept.map((anchor) =>
      anchor.tenant === OTHER ? { ...anchor, seq: 9 } : anchor,
    );
    assert.equal((await core.journal.verify(core.operator)).ok, true);
    const theirs = await core.journal.verify(operatorOf(OTHER));
    assert.deepEqual([theirs.ok, theirs.anchor?.seq, theirs.last_seq], [false, 9, 3]);
  });

  it("compares more anchors than fit in one step", async () => {
    await using core = await coreOnMemory();
    for (let round = 0; round < 450; round += 1) {
      await happen(core, DEFAULT_TENANT, 1);
      await core.anchoring.keepAll();
    }
    assert.equal(core.anchors.kept.length, 450);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
    core.anchors.kept[444] = other(core.anchors.kept[444], { hash: "f".repeat(64) });
    assert.equal((await core.journal.verify(core.operator)).ok, false);
  });
});

describe("two relays on one store, each with its own anchors", () => {
  it("take over from each other: each checks its own and says what the store knows of the other's", async () => {
    await using core = await coreOnMemory();
    const theirs = new MemoryAnchors();
    const relay = core.beside({ anchors: theirs });
    await core.anchoring.keepAll();
    const { seq, hash } = await head(core);
    const seen = { seq, hash, at: "2026-05-08T12:00:00.000Z" };
    const before = await relay.journal.verify(core.operator);
    assert.deepEqual([before.ok, before.anchor, before.newest_anchor], [true, undefined, seen]);
    assert.equal((await core.journal.verify(core.operator)).newest_anchor, undefined);
    core.clock.advance(1_000);
    await core.send();
    await relay.anchoring.keepAll();
    assert.deepEqual(
      theirs.kept.map((anchor) => anchor.seq),
      [seq + 1],
    );
    const after = await core.journal.verify(core.operator);
    assert.deepEqual([after.ok, after.anchor, after.newest_anchor?.seq], [true, seen, seq + 1]);
    await core.send();
    await core.anchoring.keepAll();
    assert.equal((await core.journal.verify(core.operator)).anchor?.seq, seq + 2);
  });

  it("believe their own anchors, whatever the store says of the newest", async () => {
    await using core = await coreOnMemory();
    await core.anchoring.keepAll();
    const [seen] = core.anchors.kept;
    const { seq } = await head(core);
    core.anchors.kept = [other(seen, { seq: seq + 1 })];
    await core.store.commit({
      tenant: DEFAULT_TENANT,
      events: [],
      anchors: [other(seen, { seq, atMs: NOON_MS + 1 })],
    });
    assert.match((await core.journal.verify(core.operator)).problem ?? "", /1 event is missing/);
    await assert.rejects(core.anchoring.keepAll(), /1 event is missing/);
  });
});

describe("retention and anchors", () => {
  const SETTINGS = { messageRetentionMs: 10 * DAY_MS, journalRetentionMs: 20 * DAY_MS };

  it("may take all anchored events: it keeps an anchor first", async () => {
    await using core = await coreOnMemory(SETTINGS);
    await core.anchoring.keepAll();
    await core.send();
    core.clock.advance(15 * DAY_MS);
    await core.send();
    core.clock.advance(6 * DAY_MS);
    assert.ok((await core.retention.step(DEFAULT_TENANT)).events > 0);
    const { ok, anchor, last_seq, first_seq } = await core.journal.verify(core.operator);
    assert.deepEqual([ok, anchor?.seq], [true, last_seq]);
    assert.equal(core.anchors.kept.length, 2);
    assert.ok(first_seq > (core.anchors.kept[0]?.seq ?? 0));
    core.clock.advance(30 * DAY_MS);
    await core.retention.step(DEFAULT_TENANT);
    const empty = await core.journal.verify(core.operator);
    assert.deepEqual([empty.ok, empty.events], [true, 0]);
  });

  it("takes nothing when the anchor cannot be kept", async () => {
    await using core = await coreOnMemory(SETTINGS);
    core.clock.advance(100 * DAY_MS);
    core.anchors.keep = () => Promise.reject(new Error("the other disk is full"));
    await assert.rejects(core.retention.step(DEFAULT_TENANT), /the other disk is full/);
    assert.equal((await core.journal.verify(core.operator)).first_seq, 1);
  });

  it("cannot be faked: events missing beyond the newest anchor are reported", async () => {
    await using core = await coreOnMemory(SETTINGS);
    await core.anchoring.keepAll();
    const { seq } = await head(core);
    await core.send();
    await core.store.retention.retireEvents(DEFAULT_TENANT, await head(core));
    const { ok, problem } = await core.journal.verify(core.operator);
    assert.equal(ok, false);
    assert.match(
      problem ?? "",
      new RegExp(`has seen event ${seq}, but all events up to ${seq + 1} are gone`),
    );
    await core.send();
    await assert.rejects(core.anchoring.keepAll(), /are gone/);
  });

  it("ends at an anchored event", async () => {
    await using core = await coreOnMemory(SETTINGS);
    await core.anchoring.keepAll();
    await core.store.retention.retireEvents(DEFAULT_TENANT, await head(core));
    assert.equal((await core.journal.verify(core.operator)).ok, true);
    core.anchors.kept = [other(core.anchors.kept[0], { hash: "f".repeat(64) })];
    assert.equal((await core.journal.verify(core.operator)).ok, false);
  });
});
