import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import type { VerifyResponse } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FakeClock, NOON_MS } from "../../../testing/fake-clock.ts";
import { MemoryAnchors } from "../../../testing/memory-anchors.ts";
import { aMessage } from "../../../testing/records.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { openSqliteStore } from "../../stores/sqlite/sqlite-relay-store.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import type { Changes } from "../ports/relay-store.ts";
import { createMessage } from "../rules/new-message.ts";
import { verifyChain } from "./verify-chain.ts";

/** Writes three messages into a file, edits the file with SQL, and verifies the chain. */
async function verifyAfter(edit: string): Promise<VerifyResponse> {
  const directory = mkdtempSync(join(tmpdir(), "a2a-relay-verify-"));
  const options = {
    path: join(directory, "relay.sqlite"),
    checkpointPages: 1_000,
    onFatal: (reason: unknown) => assert.fail(String(reason)),
  };
  try {
    {
      await using store = await openSqliteStore(options);
      for (const id of ["m1", "m2", "m3"]) await store.commit(message(id));
    }
    const database = new DatabaseSync(options.path);
    database.exec(edit);
    database.close();
    await using store = await openSqliteStore(options);
    return await verifyChain({ store, clock: new FakeClock(), anchors: new MemoryAnchors() }, DEFAULT_TENANT);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe("verifying the journal", () => {
  it("accepts a valid chain, from its first event to its head", async () => {
    await using core = await coreOnMemory();
    const { seq } = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    for (let index = 0; index < 5; index += 1) await core.send();
    const head = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    assert.deepEqual(await core.journal.verify(core.operator), {
      ok: true,
      events: seq + 5,
      messages: 5,
      first_seq: 1,
      last_seq: seq + 5,
      head: head.hash,
    });
  });

  it("reads more events than fit on one page", async () => {
    await using core = await coreOnMemory({ mailboxOpenMax: 10_000 });
    const { seq } = (await core.store.journal.chain(DEFAULT_TENANT)).head;
    const messages = Array.from({ length: 400 }, () => ({ from: "lulu", to: "zhiwei", body: "x" }));
    for (let index = 0; index < 3; index += 1) {
      await core.messages.sendBatch(core.operator, { messages });
      await core.mailboxes.lease(core.operator, "zhiwei", { max: 100 });
    }
    const { ok, events } = await core.journal.verify(core.operator);
    assert.deepEqual([ok, events], [true, seq + 3 * 500]);
  });

  it("lets other work run after each megabyte of messages", async () => {
    await using core = await coreOnMemory();
    for (let index = 0; index < 6; index += 1) await core.send({ body: "x".repeat(700_000) });
    const clock = new BusyClock();
    assert.equal((await verifyChain({ ...core, clock }, DEFAULT_TENANT)).ok, true);
    assert.equal(clock.yields, 3);
  });

  it("accepts a chain to which another relay appends while it runs", async () => {
    await using core = await coreOnMemory();
    await core.send();
    const { journal } = core.store;
    let sendsLeft = 10;
    const chain: typeof journal.chain = async (tenant) => {
      const found = await journal.chain(tenant);
      sendsLeft -= 1;
      if (sendsLeft >= 0) await core.send();
      return found;
    };
    const store = {
      ...core.store,
      journal: Object.assign({}, journal, { chain, events: journal.events.bind(journal) }),
    };
    const parts = { store, clock: new FakeClock(), anchors: new MemoryAnchors() };
    const { ok, problem } = await verifyChain(parts, DEFAULT_TENANT);
    assert.deepEqual([ok, problem], [true, undefined]);
  });

  it("accepts messages that are retired while it runs", async () => {
    await using core = await coreOnMemory();
    const ids: string[] = [];
    for (let index = 0; index < 8; index += 1) {
      ids.push((await core.send({ body: "x".repeat(700_000) })).receipt.message_id);
    }
    await core.mailboxes.ack(core.operator, ZHIWEI, { message_ids: ids });
    // A message that was read, an unread one of the same page, and in the next step two more.
    const victims = [0, 3, 4, 7].map((index) => ids[index] ?? "");
    const clock = new BusyClock(async () => {
      for (const id of victims.splice(0, 2)) await retire(core.store, id);
    });
    const report = await verifyChain({ ...core, clock }, DEFAULT_TENANT);
    assert.deepEqual([report.problem, report.ok, report.messages], [undefined, true, 8]);
    assert.equal(victims.length, 0);
  });

  it("of an unchanged store succeeds", async () => {
    assert.equal((await verifyAfter("select 1")).ok, true);
  });

  const edits: readonly [what: string, sql: string, words: RegExp][] = [
    ["an event's actor", "update event set actor = 'x' where seq = 2", /event 2 .*changed/],
    ["an event's time", "update event set at_ms = at_ms + 1 where seq = 2", /event 2 .*changed/],
    ["an event's data", "update event set data_json = '{}' where seq = 3", /event 3 .*changed/],
    ["an event's hash", "update event set hash = zeroblob(32) where seq = 3", /event 3|head/],
    ["a missing event", "delete from event where seq = 2", /event 2 is missing/],
    ["a missing last event", "delete from event where seq = 3", /3 to 3 are missing|head/],
    ["all events gone", "delete from event", /1 to 3 are missing/],
    [
      "a head set back",
      "update chain_head set (seq, hash) = (select seq, lower(hex(hash)) from event where seq = 2)",
      /behind/,
    ],
    ["a head that is another", "update chain_head set hash = 'x'", /the head says x/],
    ["a missing message", "delete from message where id = 'm2'", /gone, and retention did not take it/],
    ["missing messages", "delete from message", /gone/],
    [
      "a message's text",
      "update message set json = replace(json, '你好', '再见') where id = 'm2'",
      /message m2/,
    ],
  ];
  for (const [what, sql, words] of edits) {
    it(`finds ${what} edited`, async () => {
      const { ok, problem } = await verifyAfter(sql);
      assert.equal(ok, false);
      assert.match(problem ?? "", words);
    });
  }
});

/** Counts the calls of `nextTurn`, and runs `happens` in each. */
class BusyClock extends FakeClock {
  readonly #happens: () => Promise<void>;
  yields = 0;

  constructor(happens: () => Promise<void> = async () => undefined) {
    super();
    this.#happens = happens;
  }

  override async nextTurn(): Promise<void> {
    this.yields += 1;
    await this.#happens();
  }
}

async function retire(store: RelayStore, messageId: string): Promise<void> {
  const accepted = (await store.journal.ofMessages(DEFAULT_TENANT, [messageId]))[0];
  const noSubject = { agentId: null, messageId: null, taskId: null, threadId: null };
  const data = { messages: [[messageId, accepted?.seq]] };
  const event = {
    type: "mail.retired",
    atMs: NOON_MS,
    actor: "postmaster@relay",
    ...noSubject,
    data,
  } as const;
  await store.retention.retireMessages(DEFAULT_TENANT, [messageId], NOON_MS, event);
}

function message(id: string): Changes {
  const { changes } = createMessage(aMessage({ id, sender: LULU, recipient: ZHIWEI }));
  return { tenant: DEFAULT_TENANT, ...changes };
}
