import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { anEvent, send, settle, TENANT } from "../../../testing/store-builders.ts";
import { type PostgresOptions, withConnection } from "./database.ts";
import { openPostgresStore, type PostgresStore } from "./postgres-relay-store.ts";

const EXPIRY = { nowMs: NOON_MS, sendKeysBeforeMs: 0, cachedResultsMax: 100 };

let server: TestServer;
before(async () => {
  server = await startPostgres();
});
after(() => server[Symbol.asyncDispose]());

/** A store whose database is on the given day, as the database's clock would say it. */
async function openOnDay(options: PostgresOptions, day: number): Promise<PostgresStore> {
  await (await openPostgresStore(options))[Symbol.asyncDispose]();
  await moveTo(options, day);
  return openPostgresStore(options);
}

async function moveTo(options: PostgresOptions, day: number): Promise<void> {
  const sql = `create or replace function partition_day() returns bigint language sql return ${day}::bigint`;
  await withConnection(options, (client) => client.query(sql));
}

async function partitions(options: PostgresOptions): Promise<readonly string[]> {
  const sql = `select relname from pg_class where relkind = 'r' and relispartition
    and relnamespace = current_schema()::regnamespace and relname ~ '_[0-9]{3}$' order by relname collate "C"`;
  const { rows } = await withConnection(options, (client) => client.query<{ relname: string }>(sql));
  return rows.map(({ relname }) => relname);
}

async function retireAllEvents(store: PostgresStore): Promise<void> {
  const { head } = await store.journal.chain(TENANT);
  await store.retention.retireEvents(TENANT, head);
}

describe("the partitions of a PostgreSQL store", () => {
  it("are made for today and tomorrow, and for the days that follow while the relay runs", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await using store = await openOnDay(options, 500);
    const ofDays = (...days: readonly number[]): readonly string[] =>
      ["event", "message", "settled_delivery"].flatMap((table) => days.map((day) => `${table}_${day}`));
    assert.deepEqual(await partitions(options), ofDays(500, 501));
    await moveTo(options, 501);
    await store.retention.forgetExpired(EXPIRY);
    assert.ok((await partitions(options)).includes("message_502"));
  });

  it("are made once by relays that start at the same time", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await (await openOnDay(options, 500))[Symbol.asyncDispose]();
    await moveTo(options, 600);
    const stores = await Promise.all([1, 2, 3, 4].map(() => openPostgresStore(options)));
    for (const store of stores) await store[Symbol.asyncDispose]();
    assert.equal((await partitions(options)).filter((name) => name.endsWith("_600")).length, 3);
  });

  it("are made by the first commit of a day for which there is none, as after a long sleep", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await using store = await openOnDay(options, 500);
    await moveTo(options, 507);
    await Promise.all([send(store, { id: "醒" }), send(store, { id: "了" })]);
    assert.deepEqual(
      (await store.messages.get(TENANT, ["醒", "了"])).map((message) => message?.id),
      ["醒", "了"],
    );
  });

  it("of a past day are dropped when its messages and events were retired, and not before", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await using store = await openOnDay(options, 500);
    const old = await send(store, { id: "旧" });
    await settle(store, old.id);
    const open = await send(store, { id: "开" });
    await moveTo(options, 503);
    await store.retention.forgetExpired(EXPIRY);
    await send(store, { id: "新" });

    await store.retention.retireMessages(TENANT, [old.id], NOON_MS, anEvent());
    assert.deepEqual(await store.messages.get(TENANT, [old.id]), [undefined]);
    assert.deepEqual(await store.deliveries.get(TENANT, [old.id]), [undefined]);
    await store.retention.forgetExpired(EXPIRY);
    assert.ok((await partitions(options)).includes("message_500"), "an open message is in it");

    await settle(store, open.id);
    await store.retention.retireMessages(TENANT, [open.id], NOON_MS);
    await store.retention.forgetExpired(EXPIRY);
    const left = await partitions(options);
    assert.deepEqual(
      left.filter((name) => name.endsWith("_500")),
      ["event_500"],
    );
    assert.equal((await store.messages.get(TENANT, ["新"]))[0]?.id, "新");

    await retireAllEvents(store);
    await store.retention.forgetExpired(EXPIRY);
    assert.deepEqual(
      (await partitions(options)).filter((name) => name.endsWith("_500") || name.endsWith("_501")),
      [],
    );
    const { head, lastSeq } = await store.journal.chain(TENANT);
    assert.equal(lastSeq, head.seq);
  });

  it("stay while events in them are not sealed", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await using store = await openOnDay(options, 500);
    await retireAllEvents(store);
    await send(store);
    await moveTo(options, 502);
    await store.retention.forgetExpired(EXPIRY);
    assert.ok((await partitions(options)).includes("event_500"));
    assert.equal((await store.journal.chain(TENANT)).lastSeq, 1);
  });

  it("keep the order of messages and events over the days", async () => {
    const options = { url: server.url, poolMax: 2, schema: server.newSchema() };
    await using store = await openOnDay(options, 500);
    const ids = ["一", "二", "三"];
    for (const [index, id] of ids.entries()) {
      await moveTo(options, 500 + index);
      await store.retention.forgetExpired(EXPIRY);
      await send(store, { id, threadId: "线" });
    }
    const { messages } = await store.messages.thread({
      tenant: TENANT,
      threadId: "线",
      limit: 10,
      bytesMax: 1e6,
    });
    assert.deepEqual(
      messages.map(({ message }) => message.id),
      ids,
    );
    const events = await store.journal.ofMessages(TENANT, ids);
    assert.deepEqual([...new Set(events.map(({ messageId }) => messageId))], ids);
  });
});
