import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { expiryAt } from "../../../testing/records.ts";
import { refused } from "../../../testing/refusal.ts";
import { describeRelayStore } from "../../../testing/relay-store.contract.ts";
import {
  aNewAgent,
  aNewKey,
  aNewTask,
  aSend,
  change,
  commit,
  countOpen,
  lease,
  newId,
  OTHER_TENANT,
  QUEUE,
  readIds,
  send,
  sendKeyOf,
  settle,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "../../../testing/store-builders.ts";
import { revokedAt } from "../../core/ports/access.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openSqliteStore, type SqliteStoreOptions } from "./sqlite-relay-store.ts";
import { agentsNamed } from "../../core/rules/agent-names.ts";

const STORE_PROCESS = join(import.meta.dirname, "../../../testing/store-process.ts");
const directory = mkdtempSync(join(tmpdir(), "a2a-relay-store-"));

const newPath = (): string => join(directory, newId("store"), "relay.db");

function open(path: string, said: Partial<SqliteStoreOptions> = {}): Promise<RelayStore> {
  return openSqliteStore({
    path,
    checkpointPages: 1_000,
    onFatal: (error) => {
      throw error;
    },
    ...said,
  });
}

describeRelayStore("SQLite", () => open(newPath()));

describe("the SQLite store", () => {
  after(() => rmSync(directory, { recursive: true, force: true }));

  it("leases a message that is written in the same commit", async () => {
    await using store = await open(":memory:");
    const sent = aSend();
    const [, leased] = await Promise.all([store.commit(sent), lease(store)]);
    assert.deepEqual(
      leased.map(({ message }) => message),
      sent.messages,
    );
  });

  describe("opened again", () => {
    it("has every record, count, position and head that it had", async () => {
      const path = newPath();
      const sent = aSend({ taskId: "task" });
      const [first] = sent.messages;
      const before = await (async () => {
        await using store = await open(path);
        await commit(store, {
          ...sent,
          agents: [aNewAgent({ aliases: ["别名"] })],
          sendKeys: [sendKeyOf(first, "钥匙")],
          tasks: [aNewTask({ id: "task", messageId: first.id })],
          artifacts: [{ tenant: TENANT, taskId: "task", artifact: { artifactId: "a", parts: [] } }],
        });
        await store.agents.touch(TENANT, ZHIWEI, 123);
        await send(store);
        await lease(store, { leaseIds: [newId("lease"), newId("lease")] });
        await change(store, first.id, { state: "available" });
        await send(store, {}, { state: "held" });
        await send(store);
        await send(store, { tenant: OTHER_TENANT });
        await settle(store, (await send(store)).id);
        return await contents(store, first.id);
      })();
      await using store = await open(path);
      assert.deepEqual(await contents(store, first.id), before);
      assert.equal((await store.agents.get(TENANT, ZHIWEI))?.lastSeenAtMs, 123);
    });

    it("has the leased delivery that it returned before", async () => {
      const path = newPath();
      const leased = await (async () => {
        await using store = await open(path);
        const { id } = await send(store);
        await lease(store, { worker: "工人一", leaseExpiresAtMs: 5_000 });
        return (await store.deliveries.get(TENANT, [id]))[0] ?? assert.fail("no delivery");
      })();
      await using store = await open(path);
      assert.equal(leased.state, "leased");
      assert.deepEqual((await store.deliveries.get(TENANT, [leased.messageId]))[0], leased);
    });

    it("still knows when an agent was last seen, and does not go back", async () => {
      const path = newPath();
      for (const seenAtMs of [2_000, 1_000]) {
        await using store = await open(path);
        if ((await store.agents.get(TENANT, ZHIWEI)) === undefined)
          await commit(store, { agents: [aNewAgent()] });
        await store.agents.touch(TENANT, ZHIWEI, seenAtMs);
      }
      await using store = await open(path);
      assert.equal((await store.agents.get(TENANT, ZHIWEI))?.lastSeenAtMs, 2_000);
    });

    it("never gives a position again, also when all messages were retired", async () => {
      const path = newPath();
      let last: number;
      {
        await using store = await open(path);
        const { id } = await send(store);
        last = (await storedDelivery(store, id)).position;
        await settle(store, id);
        await store.retention.retireMessages(TENANT, [id], NOON_MS);
      }
      await using store = await open(path);
      const { id } = await send(store);
      assert.ok((await storedDelivery(store, id)).position > last);
    });

    it("leaves one file behind, readable by its owner alone, and no log", async () => {
      const path = newPath();
      {
        await using store = await open(path);
        await send(store);
        assert.ok(existsSync(`${path}-wal`));
      }
      assert.ok(!existsSync(`${path}-wal`));
      if (process.platform !== "win32") assert.equal(statSync(path).mode & 0o777, 0o600);
    });

    it("has nothing left in its file of what ended keys signed with", async () => {
      const path = newPath();
      const keys = Array.from({ length: 5 }, (_, index) =>
        aNewKey({ signingSecret: `whsec_${index}${"s".repeat(43)}`, expiresAtMs: NOON_MS }),
      );
      await (async () => {
        await using store = await open(path);
        await commit(store, { keys });
        const revoked = await store.keys.get(keys[2]?.id ?? "");
        assert.ok(revoked);
        await commit(store, { keys: [revokedAt(revoked, NOON_MS)] });
        assert.equal(await store.retention.forgetExpired(expiryAt(NOON_MS)), 4);
      })();
      assert.doesNotMatch(readFileSync(path, "latin1"), /whsec_|s{20}/);
    });

    it("finishes queued writes when it is closed, and refuses later ones", async () => {
      const path = newPath();
      const store = await open(path);
      const sent = Promise.all([send(store), send(store)]);
      const closed = store[Symbol.asyncDispose]();
      const messages = await sent;
      await closed;
      await store[Symbol.asyncDispose]();
      await refused(store.commit(aSend()), "unavailable", /closed/);
      await refused(store.messages.get(TENANT, ["m"]), "unavailable", /closed/);
      await using again = await open(path);
      assert.deepEqual(
        await readIds(again),
        messages.map(({ id }) => id),
      );
    });

    it("drops a commit whose end is torn off the log, and nothing before it", async () => {
      const path = newPath();
      const copy = newPath();
      await using store = await open(path);
      const kept = await send(store);
      const head = (await store.journal.chain(TENANT)).head;
      const torn = await send(store);
      mkdirSync(join(copy, ".."), { recursive: true });
      copyFileSync(path, copy);
      copyFileSync(`${path}-wal`, `${copy}-wal`);
      truncateSync(`${copy}-wal`, statSync(`${copy}-wal`).size - 100);
      await using survivor = await open(copy);
      assert.deepEqual(await readIds(survivor), [kept.id]);
      assert.deepEqual(await survivor.messages.get(TENANT, [torn.id]), [undefined]);
      assert.deepEqual((await survivor.journal.chain(TENANT)).head, head);
      assert.ok((await storedDelivery(survivor, (await send(survivor)).id)).position > 1);
    });
  });

  describe("refuses to open", () => {
    it("a file that another relay has, until that one closes", async () => {
      const path = newPath();
      {
        await using store = await open(path);
        await refused(open(path), "unavailable", /already in use by another relay.*--data/);
        await send(store);
      }
      await using store = await open(path);
      assert.equal((await readIds(store)).length, 1);
    });

    it("a file of a newer relay, and does not change it", async () => {
      const path = newPath();
      await (await open(path))[Symbol.asyncDispose]();
      const newer = new DatabaseSync(path);
      newer.exec("insert into schema_version (version, name) values (999, '0999-from-the-future.sql')");
      newer.close();
      const before = readFileSync(path);
      await refused(open(path), "unavailable", /newer relay \(schema 999.*upgrade/);
      assert.deepEqual(readFileSync(path), before);
    });

    it("a database of another program", async () => {
      const path = newPath();
      mkdirSync(join(path, ".."), { recursive: true });
      const other = new DatabaseSync(path);
      other.exec("create table bookmark (url text)");
      other.close();
      await refused(open(path), "unavailable", /database of another program/);
    });

    it("a file that is no database, with its path in the sentence", async () => {
      const path = newPath();
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, "不是数据库\n".repeat(200));
      const error = await refused(open(path), "unavailable", /not a SQLite database/);
      assert.ok(error.message.includes(path));
    });

    it("a directory, and a path through a file", async () => {
      await refused(open(directory), "unavailable", /is a directory/);
      const file = join(directory, newId("file"));
      writeFileSync(file, "");
      await refused(open(join(file, "relay.db")), "unavailable", /cannot open/);
    });

    const isRoot = process.getuid?.() === 0;
    it("a directory it may not write", { skip: isRoot && "root may write everywhere" }, async () => {
      const readOnly = join(directory, newId("read-only"));
      mkdirSync(readOnly, { mode: 0o500 });
      await refused(open(join(readOnly, "relay.db")), "unavailable", /permission/);
    });
  });

  describe("on a full disk", () => {
    it("refuses sends with nothing half done, still reads, and goes on once there is room", async () => {
      await using store = await open(newPath(), { pagesMax: 120 });
      const answered: string[] = [];
      let refusals = 0;
      while (refusals < 3) {
        const batch = Array.from({ length: 7 }, () =>
          aSend({ json: JSON.stringify({ body: "满".repeat(500) }) }),
        );
        const outcomes = await Promise.allSettled(batch.map((each) => store.commit(each)));
        for (const [index, outcome] of outcomes.entries()) {
          const id = batch[index]?.messages[0].id ?? "";
          if (outcome.status === "fulfilled") {
            answered.push(id);
            continue;
          }
          refusals += 1;
          await refused(Promise.reject(outcome.reason as Error), "storage_full", /disk is full/);
          assert.equal((await store.messages.get(TENANT, [id]))[0], undefined);
        }
      }
      assert.ok(answered.length > 20);
      assert.deepEqual(await readIds(store), answered);
      assert.equal(await countOpen(store, TENANT, ZHIWEI), answered.length);
      assert.equal((await store.journal.chain(TENANT)).head.seq, answered.length);
      const old = answered.slice(0, 10);
      for (const id of old) await settle(store, id);
      await store.retention.retireMessages(TENANT, old, NOON_MS);
      const { id } = await send(store);
      assert.deepEqual(await readIds(store), [...answered.slice(10), id]);
    });
  });

  describe("beside other processes", () => {
    it("takes over at once from a relay that was killed, with every answered send", async () => {
      const path = newPath();
      const { child, lines } = startStoreProcess([process.execPath], path);
      const answered: string[] = [];
      for await (const line of lines) {
        if (line.startsWith("sent ")) answered.push(line.slice("sent ".length));
        if (answered.length === 50) break;
      }
      child.kill("SIGKILL");
      await once(child, "close");
      await using store = await open(path);
      assert.deepEqual((await readIds(store)).slice(0, 50), answered);
    });

    const noUlimit = process.platform === "win32" && "there is no ulimit";
    it("ends rather than guess when a commit fails on the disk", { skip: noUlimit }, async () => {
      const path = newPath();
      // A file size limit makes the log's write fail in the middle of a commit.
      const limited = ["/bin/sh", "-c", 'ulimit -f 3000; exec "$0" "$@"', process.execPath];
      const { child, lines } = startStoreProcess(limited, path);
      const exited = once(child, "close");
      const said: string[] = [];
      for await (const line of lines) said.push(line);
      assert.deepEqual((await exited)[0], 3);
      assert.equal(said.at(-1), "fatal");
      const answered = said.filter((line) => line.startsWith("sent ")).map((line) => line.slice(5));
      assert.ok(answered.length > 0);
      await using store = await open(path);
      assert.deepEqual((await readIds(store)).slice(0, answered.length), answered);
    });
  });

  describe("its statements", () => {
    // A few rows, and what is read once at the start.
    const mayScan =
      /^SCAN (sqlite_schema|store_head|chain_head|tenant|tenants|t|delivery USING INDEX \w+|json_each VIRTUAL TABLE .*|\(subquery-\d+\))$/;

    it("never scan a table to find a row", async (context) => {
      const prepare = context.mock.method(DatabaseSync.prototype, "prepare");
      const path = newPath();
      await using store = await open(path);
      assert.deepEqual(await store.agents.count(TENANT), { all: 0, remote: 0 });
      const sqls = prepare.mock.calls.map((call) => call.arguments[0]);
      prepare.mock.restore();
      using database = new DatabaseSync(path);
      const planned = sqls.filter((sql) => /^\s*(select|update|delete|with)\b/.test(sql));
      assert.ok(planned.length > 40);
      for (const sql of planned) {
        const plan = database.prepare(`explain query plan ${sql}`).all();
        for (const step of plan.map((row) => String(row["detail"]))) {
          if (step.startsWith("SCAN")) assert.match(step, mayScan, sql);
        }
      }
    });
  });
});

/** What the store answers about everything that the first case above put into it. */
async function contents(store: RelayStore, messageId: string): Promise<unknown> {
  const [message] = await store.messages.get(TENANT, [messageId]);
  return {
    message,
    delivery: (await store.deliveries.get(TENANT, [messageId]))[0],
    sendKey: message && (await store.messages.sendKey(TENANT, message.sender, message.recipient, "钥匙")),
    task: (await store.tasks.get(TENANT, ["task"]))[0],
    artifacts: await store.tasks.artifacts(TENANT, "task"),
    agent: await store.agents.get(TENANT, ZHIWEI),
    named: await agentsNamed(store, TENANT, "别名"),
    readable: await readIds(store),
    open: [await countOpen(store, TENANT, ZHIWEI), await countOpen(store, OTHER_TENANT, ZHIWEI)],
    leased: await store.deliveries.queue({ ...QUEUE, state: "leased" }),
    heads: [(await store.journal.chain(TENANT)).head, (await store.journal.chain(OTHER_TENANT)).head],
    story: await store.journal.ofMessages(TENANT, [messageId]),
  };
}

function startStoreProcess(
  command: readonly string[],
  path: string,
): { readonly child: ChildProcess; readonly lines: AsyncIterable<string> } {
  const [program, ...args] = [...command, "--conditions=source", STORE_PROCESS, path];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  return { child, lines: createInterface({ input: child.stdout }) };
}
