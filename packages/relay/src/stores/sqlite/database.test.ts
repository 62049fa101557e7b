import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import {
  aNewPushEndpoint,
  commit,
  idsOf,
  lease,
  pushOf,
  readIds,
  send,
  settle,
  TENANT,
  ZHIWEI,
} from "../../../testing/store-builders.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";
import { publicKeyOf } from "../../core/rules/agent-owner.ts";

const FIRST = "0001-post-office.sql";
const SECOND = "0002-trust.sql";
const THIRD = "0003-live-delivery.sql";

const directory = mkdtempSync(join(tmpdir(), "a2a-relay-migrate-"));

function open(path: string): Promise<RelayStore> {
  return openSqliteStore({
    path,
    checkpointPages: 1_000,
    onFatal: (error) => {
      throw error;
    },
  });
}

/** A file as the first schema wrote it: an agent, a note, a request, and its result. */
function writeFirstSchema(path: string): void {
  using database = new DatabaseSync(path);
  database.exec("create table schema_version (version integer primary key, name text not null) strict");
  database.prepare("insert into schema_version values (1, ?)").run(FIRST);
  database.exec(readFileSync(new URL(`migrations/${FIRST}`, import.meta.url), "utf8"));
  database.exec("update store_head set position = 3");
  database
    .prepare("insert into agent values (?, ?, '知微', '[]', '{}', '[]', '[]', null, null, ?, null, 1)")
    .run(TENANT, ZHIWEI, NOON_MS);
  const insertMessage = database.prepare(
    "insert into message values (?, ?, ?, 'lulu@kamac', ?, ?, 'thread', ?, ?, null, '{}')",
  );
  const insertDelivery = database.prepare(`
    insert into delivery values (?1, ?2, ?3, ?4, 'lulu@kamac', ?5, 'available', ?1, null, 0, null, null, null, null,
      null, ?6, null, null, 'unsafe', null, 0, 'thread', 1)`);
  const messages = [
    ["note", null],
    ["request", "task"],
    ["reply", "task"],
  ] as const;
  for (const [index, [kind, taskId]] of messages.entries()) {
    insertMessage.run(index + 1, TENANT, kind, ZHIWEI, kind, taskId, NOON_MS);
    insertDelivery.run(index + 1, TENANT, kind, ZHIWEI, taskId, NOON_MS + 1_000);
  }
  database
    .prepare(
      `insert into task values (?, 'task', 'lulu@kamac', ?, 'completed', 'thread', 'request', '翻译', null, null,
        null, 'ok', 'reply', null, '[]', 0, 0, 1)`,
    )
    .run(TENANT, ZHIWEI);
}

/** A file as the second schema wrote it, with a key in it. */
function writeSecondSchema(path: string): void {
  writeFirstSchema(path);
  using database = new DatabaseSync(path);
  database.prepare("insert into schema_version values (2, ?)").run(SECOND);
  database.exec(readFileSync(new URL(`migrations/${SECOND}`, import.meta.url), "utf8"));
  database
    .prepare(
      "insert into api_key values ('key_一', ?, ?, null, 'digest', 0, '操作员', null, null, null, null, 1)",
    )
    .run(TENANT, ZHIWEI);
}

/** A file as the third schema wrote it, with three tasks that were handed over. */
function writeThirdSchema(path: string): void {
  writeSecondSchema(path);
  using database = new DatabaseSync(path);
  database.prepare("insert into schema_version values (3, ?)").run(THIRD);
  database.exec(readFileSync(new URL(`migrations/${THIRD}`, import.meta.url), "utf8"));
  const insertMessage = database.prepare(
    "insert into message values (?, ?, ?, ?, ?, 'request', ?, ?, ?, null, '{}')",
  );
  const insertTask = database.prepare(`
    insert into task (tenant, id, requester, assignee, state, thread_id, message_id, subject, handoffs_json,
      created_at_ms, updated_at_ms, version) values (?, ?, 'lulu@kamac', ?, 'working', ?, ?, '翻译', ?, 0, 0, 1)`);
  const tasks = [
    // Its message began a thread of its own; a chosen thread; and one whose first message is gone.
    { id: "own", thread: "thread_甲", messages: ["msg_甲", "msg_乙"] },
    { id: "chosen", thread: "线", messages: ["msg_丙", "msg_丁"] },
    { id: "gone", thread: "thread_无", messages: [undefined, "msg_戊"] },
  ] as const;
  let ref = 10;
  for (const { id, thread, messages } of tasks) {
    const [first, handoff] = messages;
    if (first !== undefined) {
      insertMessage.run(
        (ref += 1),
        TENANT,
        first,
        "lulu@kamac",
        ZHIWEI,
        id === "own" ? "" : thread,
        id,
        NOON_MS,
      );
    }
    insertMessage.run((ref += 1), TENANT, handoff, ZHIWEI, "carol@host", thread, id, NOON_MS);
    insertMessage.run(
      (ref += 1),
      TENANT,
      `msg_${id}`,
      "lulu@kamac",
      "carol@host",
      thread,
      "another",
      NOON_MS,
    );
    insertTask.run(TENANT, id, "carol@host", thread, handoff, JSON.stringify([{ from: ZHIWEI }]));
  }
}

after(() => rmSync(directory, { recursive: true, force: true }));

describe("the database file", () => {
  it("is closed to others, also when it was restored with another mode", async () => {
    if (process.platform === "win32") return;
    const path = join(directory, "restored.db");
    await (await open(path))[Symbol.asyncDispose]();
    chmodSync(path, 0o644);
    await using store = await open(path);
    await send(store);
    for (const file of [path, `${path}-wal`]) assert.equal(statSync(file).mode & 0o777, 0o600);
  });
});

describe("migrations", () => {
  it("open a file of the first schema with all its records, and continue it", async () => {
    const path = join(directory, "relay.db");
    writeFirstSchema(path);
    for (let round = 0; round < 2; round += 1) {
      await using store = await open(path);
      const found = await store.agents.get(TENANT, ZHIWEI);
      assert.equal(found?.agent.displayName, "知微");
      assert.deepEqual([found.agent.publicKey, found.agent.isCustodial], [null, false]);
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), undefined);
      const [task] = await store.tasks.get(TENANT, ["task"]);
      assert.deepEqual([task?.subject, task?.clientId, task?.resultKey], ["翻译", null, null]);
      assert.deepEqual(await readIds(store), ["note", "request", "reply"]);
      assert.deepEqual(
        (await store.tenants.list()).map(({ id }) => id),
        [TENANT],
      );
    }
    await using store = await open(path);
    const { id } = await send(store);
    assert.deepEqual(await readIds(store, { afterPosition: 3 }), [id]);
  });

  it("give the deliveries of an older file their purpose: its requests are work", async () => {
    const path = join(directory, "purposes.db");
    writeFirstSchema(path);
    await using store = await open(path);
    assert.deepEqual(await readIds(store, { purpose: "mail" }), ["note"]);
    assert.deepEqual(await readIds(store, { purpose: "result" }), ["reply"]);
    assert.equal(await store.deliveries.oldestMailbox(TENANT, "work", NOON_MS), ZHIWEI);
    assert.deepEqual(idsOf(await lease(store, { purpose: "work" })), ["request"]);
    assert.equal(await store.deliveries.oldestMailbox(TENANT, "work", NOON_MS), undefined);
  });

  it("keep the keys of an older file, which sign nothing, and let its messages be pushed", async () => {
    const path = join(directory, "second.db");
    writeSecondSchema(path);
    await using store = await open(path);
    const key = await store.keys.get("key_一");
    assert.deepEqual([key?.agentId, key?.createdBy, key?.signingSecret], [ZHIWEI, "操作员", null]);
    const [note] = await store.messages.get(TENANT, ["note"]);
    assert.ok(key && note);
    await commit(store, {
      keys: [{ ...key, signingSecret: "whsec_秘密" }],
      pushEndpoints: [aNewPushEndpoint()],
      pushes: [pushOf(note)],
    });
    assert.equal((await store.keys.get("key_一"))?.signingSecret, "whsec_秘密");
    assert.equal(await store.pushes.countPending(TENANT, ZHIWEI), 1);
  });

  it("find what was asked first of tasks that were handed over in an older file", async () => {
    const path = join(directory, "third.db");
    writeThirdSchema(path);
    await using store = await open(path);
    const firstOf = async (id: string): Promise<unknown> =>
      (await store.tasks.get(TENANT, [id]))[0]?.firstMessageId;
    assert.deepEqual(
      [await firstOf("own"), await firstOf("chosen"), await firstOf("gone"), await firstOf("task")],
      ["msg_甲", "msg_丙", null, null],
    );
  });

  it("let the oldest unfinished task of an older file do the shared work, and the others wait", async () => {
    const path = join(directory, "shared.db");
    writeThirdSchema(path);
    {
      using database = new DatabaseSync(path);
      database.exec("update task set result_key = '同一件事'");
    }
    await using store = await open(path);
    const tasks = await store.tasks.get(TENANT, ["chosen", "gone", "own", "task"]);
    const found = tasks.map((task) => task?.isWaiting);
    assert.deepEqual(found, [false, true, true, false]);
    assert.equal((await store.tasks.unfinishedWithResultKey(TENANT, "同一件事"))?.id, "chosen");
  });

  it("return the events of a message of an older file, also after it is retired", async () => {
    const path = join(directory, "stories.db");
    writeFirstSchema(path);
    const hash = "ab".repeat(32);
    using database = new DatabaseSync(path);
    database
      .prepare(
        "insert into event values (?, 1, 'message.accepted', 0, 'a', 'b', 'note', null, null, '{}', ?, ?)",
      )
      .run(TENANT, hash, hash);
    database.prepare("insert into chain_head values (?, 1, ?)").run(TENANT, hash);
    database.close();
    await using store = await open(path);
    const { id } = await send(store);
    const seqsOf = async (messageId: string): Promise<readonly number[]> =>
      (await store.journal.ofMessages(TENANT, [messageId])).map(({ seq }) => seq);
    assert.deepEqual([await seqsOf("note"), await seqsOf(id)], [[1], [2]]);
    await settle(store, "note");
    await store.retention.retireMessages(TENANT, ["note"], NOON_MS);
    assert.equal((await store.messages.get(TENANT, ["note"]))[0], undefined);
    assert.deepEqual([await seqsOf("note"), await seqsOf(id)], [[1], [2]]);
  });

  it("let agents of an older file take a key, each their own", async () => {
    const path = join(directory, "keys.db");
    writeFirstSchema(path);
    await using store = await open(path);
    const agent = (await store.agents.get(TENANT, ZHIWEI))?.agent;
    assert.ok(agent);
    const outcome = await store.commit({
      tenant: TENANT,
      events: [],
      agents: [{ ...agent, publicKey: "k" }],
    });
    assert.deepEqual(outcome, { committed: true });
    const other = { ...agent, id: "other@host" as AgentId, publicKey: "k", version: 0 };
    assert.deepEqual(await store.commit({ tenant: TENANT, events: [], agents: [other] }), {
      committed: false,
      clash: "agent_key",
    });
  });
});
