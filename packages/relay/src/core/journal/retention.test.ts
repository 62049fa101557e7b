import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Message } from "@a2a-relay/protocol";
import { coreOnMemory, DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { refused } from "../../../testing/refusal.ts";
import { JsonlArchive } from "../../stores/archive/jsonl-archive.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import type { EventRecord } from "../ports/journal.ts";
import { eventHash } from "../rules/event.ts";
import { Retention } from "./retention.ts";

const SETTINGS = { messageRetentionMs: 10 * DAY_MS, journalRetentionMs: 20 * DAY_MS };

interface ArchivedMessage {
  readonly message: Message;
  readonly delivery: { readonly state: string };
  readonly task?: { readonly state: string };
}

function readArchive(values: readonly object[]): readonly ArchivedMessage[] {
  return values as readonly ArchivedMessage[];
}

describe("retention of messages", () => {
  it("archives settled messages after their time, and only then deletes them", async () => {
    await using core = await coreOnMemory(SETTINGS);
    const { receipt } = await core.send({ body: "旧信" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    core.clock.advance(10 * DAY_MS);
    assert.deepEqual(await core.retention.step(DEFAULT_TENANT), { messages: 0, events: 0, more: false });
    core.clock.advance(1);
    assert.equal((await core.retention.step(DEFAULT_TENANT)).messages, 1);
    const [line] = readArchive(core.archive.messages);
    assert.deepEqual([line?.message.id, line?.message.body], [receipt.message_id, "旧信"]);
    assert.equal(line?.delivery.state, "acknowledged");
    await refused(core.messages.get(core.operator, receipt.message_id), "not_found");
    await refused(core.journal.thread(core.operator, receipt.thread_id), "not_found");
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });

  it("records what it took, so that the chain verifies with and without its beginning", async () => {
    await using core = await coreOnMemory({ messageRetentionMs: DAY_MS, journalRetentionMs: 10 * DAY_MS });
    const { receipt } = await core.send();
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    core.clock.advance(2 * DAY_MS);
    await core.retention.step(DEFAULT_TENANT);
    const { events } = await core.journal.events(core.operator, { type: "mail.retired" });
    assert.deepEqual(events[0]?.data["messages"], [[receipt.message_id, 5]]);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
    core.clock.advance(9 * DAY_MS);
    await core.retention.step(DEFAULT_TENANT);
    const report = await core.journal.verify(core.operator);
    assert.deepEqual([report.ok, report.events], [true, 1]);
  });

  it("deletes the nonces of signed messages when they expire", async () => {
    await using core = await coreOnMemory(SETTINGS);
    const nonce = { keyId: "key", nonce: "随机数", expiresAtMs: core.clock.nowMs() };
    const change = { tenant: DEFAULT_TENANT, events: [], nonces: [nonce] };
    assert.deepEqual(await core.store.commit(change), { committed: true });
    await core.retention.step(DEFAULT_TENANT);
    assert.deepEqual(await core.store.commit(change), { committed: false, clash: "nonce" });
    core.clock.advance(1);
    await core.retention.step(DEFAULT_TENANT);
    assert.deepEqual(await core.store.commit(change), { committed: true });
  });

  it("keeps open messages, and those of a task that is not finished", async () => {
    await using core = await coreOnMemory({ ...SETTINGS, messageTtlMs: 300 * DAY_MS });
    const open = (await core.send()).receipt.message_id;
    const { receipt } = await core.send({ type: "request" });
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    core.clock.advance(50 * DAY_MS);
    assert.equal((await core.retention.step(DEFAULT_TENANT)).messages, 0);
    await core.message(open);
    await core.message(receipt.message_id);
    await core.tasks.complete(core.operator, receipt.task_id ?? "", { text: "好了" });
    core.clock.advance(11 * DAY_MS);
    assert.equal((await core.retention.step(DEFAULT_TENANT)).messages, 1, "the result is still unread");
    const [line] = readArchive(core.archive.messages);
    assert.equal(line?.task?.state, "completed");
    await refused(core.tasks.get(core.operator, receipt.task_id ?? ""), "not_found");
    assert.equal((await core.inboxOf(LULU)).length, 1);
  });

  it("deletes nothing that the archive did not take", async () => {
    await using core = await coreOnMemory(SETTINGS);
    const { receipt } = await core.send();
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    core.clock.advance(30 * DAY_MS);
    const archive = { append: () => Promise.reject(new Error("the disk is full")) };
    const retention = new Retention({ ...core, archive }, SETTINGS);
    await assert.rejects(retention.step(DEFAULT_TENANT), /disk is full/);
    await core.message(receipt.message_id);
    assert.equal((await core.journal.verify(core.operator)).events, 6);
  });

  it("goes in bounded steps and says when there is more", async () => {
    await using core = await coreOnMemory(SETTINGS);
    for (let round = 0; round < 5; round += 1) {
      const messages = Array.from({ length: 50 }, () => ({ from: LULU, to: ZHIWEI, body: "x" }));
      await core.messages.sendBatch(core.operator, { messages });
    }
    const message_ids = (await core.inboxOf(ZHIWEI)).map(({ message_id }) => message_id);
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids });
    core.clock.advance(11 * DAY_MS);
    const first = await core.retention.step(DEFAULT_TENANT);
    const second = await core.retention.step(DEFAULT_TENANT);
    assert.deepEqual([first.messages, first.more, second.messages, second.more], [200, true, 50, false]);
    assert.equal(core.archive.messages.length, 250);
  });

  it("of 0 keeps everything for ever", async () => {
    await using core = await coreOnMemory({ messageRetentionMs: 0, journalRetentionMs: 0 });
    const { receipt } = await core.send();
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: [receipt.message_id] });
    core.clock.advance(10_000 * DAY_MS);
    assert.deepEqual(await core.retention.step(DEFAULT_TENANT), { messages: 0, events: 0, more: false });
    await core.message(receipt.message_id);
  });
});

describe("retention of events", () => {
  it("leaves an anchor from which the rest still verifies", async () => {
    await using core = await coreOnMemory(SETTINGS);
    await core.send({ body: "早" });
    core.clock.advance(15 * DAY_MS);
    await core.send({ body: "晚" });
    core.clock.advance(6 * DAY_MS);
    assert.equal((await core.retention.step(DEFAULT_TENANT)).events, 5);
    const verified = await core.journal.verify(core.operator);
    assert.deepEqual([verified.ok, verified.first_seq, verified.last_seq, verified.events], [true, 6, 6, 1]);
    const { events } = await core.journal.events(core.operator, {});
    assert.deepEqual(
      events.map(({ seq }) => seq),
      [6],
    );
    await core.send();
    assert.equal((await core.journal.verify(core.operator)).last_seq, 7);
  });

  it("archives lines that hash onto each other and onto what is kept", async () => {
    await using core = await coreOnMemory(SETTINGS);
    for (let index = 0; index < 5; index += 1) await core.send();
    core.clock.advance(21 * DAY_MS);
    await core.retention.step(DEFAULT_TENANT);
    const archived = core.archive.events as readonly EventRecord[];
    assert.equal(archived.length, 9);
    let hash = "0".repeat(64);
    for (const event of archived) {
      assert.equal(event.previousHash, hash);
      assert.equal(eventHash(event), event.hash);
      hash = event.hash;
    }
    assert.equal((await core.store.journal.chain(DEFAULT_TENANT)).start.hash, hash);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });

  it("may take all events, and the chain continues", async () => {
    await using core = await coreOnMemory(SETTINGS);
    core.clock.advance(100 * DAY_MS);
    await core.retention.step(DEFAULT_TENANT);
    assert.deepEqual((await core.journal.events(core.operator, {})).events, []);
    await core.send();
    const { ok, first_seq, last_seq } = await core.journal.verify(core.operator);
    assert.deepEqual([ok, first_seq, last_seq], [true, 5, 5]);
  });
});

describe("the archive", () => {
  it("is lines of JSON, one file a stream and day, readable by its owner only", async () => {
    const directory = mkdtempSync(join(tmpdir(), "a2a-relay-archive-"));
    try {
      const clock = new FakeClock();
      const archive = new JsonlArchive(join(directory, "archive"), clock);
      await archive.append("messages", [{ body: "知微\n你好" }, { n: 2 }]);
      await archive.append("messages", [{ n: 3 }]);
      clock.advance(DAY_MS);
      await archive.append("events", [{ seq: 1 }]);
      assert.deepEqual(readdirSync(join(directory, "archive")).toSorted(), [
        "events-2026-05-09.jsonl",
        "messages-2026-05-08.jsonl",
      ]);
      const file = join(directory, "archive", "messages-2026-05-08.jsonl");
      const text = readFileSync(file, "utf8");
      if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o077, 0);
      const lines = text.trimEnd().split("\n");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line) as unknown),
        [{ body: "知微\n你好" }, { n: 2 }, { n: 3 }],
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
