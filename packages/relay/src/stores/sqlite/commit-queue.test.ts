import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import { journalTopic, type Topic } from "../../core/ports/change-feed.ts";
import { CommitQueue } from "./commit-queue.ts";
import { openDatabase } from "./database.ts";
import { StoreState } from "./store-state.ts";

interface Setup extends Disposable {
  readonly queue: CommitQueue;
  readonly state: StoreState;
  /** The topics of each commit so far. */
  readonly commits: (readonly Topic[])[];
  insert(atMs: number): void;
  rows(): readonly unknown[];
  exec(sql: string): void;
}

function setup(onCommit: () => unknown = () => undefined): Setup {
  const { database } = openDatabase({ path: ":memory:" });
  database.exec("create table fact (at_ms integer primary key) strict");
  const state = new StoreState(database);
  const commits: (readonly Topic[])[] = [];
  const queue = new CommitQueue(database, state, {
    onCommit: (topics) => {
      commits.push(topics);
      onCommit();
    },
    onFatal: (error) => {
      throw error;
    },
  });
  const insert = database.prepare("insert into fact (at_ms) values (?)");
  const select = database.prepare("select at_ms from fact order by at_ms");
  return {
    queue,
    state,
    commits,
    insert: (atMs) => void insert.run(atMs),
    rows: () => select.all().map((row) => row["at_ms"]),
    exec: (sql) => database.exec(sql),
    [Symbol.dispose]: () => database.close(),
  };
}

describe("CommitQueue", () => {
  it("runs all queued jobs in one commit, and answers after it", async () => {
    using store = setup();
    const answers = Array.from({ length: 50 }, (_, index) =>
      store.queue.submit(() => {
        store.insert(index);
        return index;
      }),
    );
    assert.equal(store.commits.length, 0);
    assert.deepEqual(await Promise.all(answers), [...answers.keys()]);
    assert.equal(store.commits.length, 1);
    assert.equal(store.rows().length, 50);
  });

  it("lets readers act on the change before its callers are answered", async () => {
    const order: string[] = [];
    using store = setup(async () => {
      for (let step = 0; step < 100; step += 1) await Promise.resolve();
      order.push("read");
    });
    await store.queue.submit(() => store.insert(1));
    order.push("answered");
    assert.deepEqual(order, ["read", "answered"]);
  });

  it("lets jobs of the next four turns of the event loop share the commit", async () => {
    using store = setup();
    const jobs: Promise<void>[] = [];
    const commitsAfterTurn: number[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      jobs.push(store.queue.submit(() => store.insert(2 * turn)));
      jobs.push(store.queue.submit(() => store.insert(2 * turn + 1)));
      await nextTurn();
      commitsAfterTurn.push(store.commits.length);
    }
    await Promise.all(jobs);
    assert.deepEqual(commitsAfterTurn, [0, 0, 0, 0, 1, 1]);
    assert.equal(store.commits.length, 2);
  });

  it("commits a single job without waiting for others", async () => {
    using store = setup();
    const job = store.queue.submit(() => store.insert(1));
    await nextTurn();
    assert.equal(store.commits.length, 1);
    await job;
  });

  it("takes at most 256 jobs into a commit and lets other work in between", async () => {
    using store = setup();
    const jobs = Array.from({ length: 600 }, (_, index) => store.queue.submit(() => store.insert(index)));
    await nextTurn();
    assert.equal(store.commits.length, 1);
    await Promise.all(jobs);
    assert.equal(store.commits.length, 3);
  });

  it("undoes a job that throws, rows and memory, and no other", async () => {
    using store = setup();
    const topic = journalTopic("t");
    const before = store.state.nextPosition();
    const positions = await Promise.allSettled([
      store.queue.submit(() => {
        store.insert(1);
        return store.state.nextPosition();
      }),
      store.queue.submit(() => {
        store.insert(2);
        store.state.nextPosition();
        store.state.moveChainHead("t", { seq: 9, hash: "wrong" });
        const delivery = { ref: 7, position: 7, expiresAtMs: 9, purpose: "mail", reservedFor: null } as const;
        store.state.moveDelivery("t", "a", undefined, { ...delivery, state: "available" });
        store.state.wake(topic);
        throw new RelayError("conflict", "no");
      }),
      store.queue.submit(() => {
        store.insert(3);
        return store.state.nextPosition();
      }),
    ]);
    assert.deepEqual(
      positions.map((settled) => (settled.status === "fulfilled" ? settled.value : "refused")),
      [before + 1, "refused", before + 2],
    );
    assert.deepEqual(store.rows(), [1, 3]);
    assert.equal(store.state.chainHead("t").seq, 0);
    assert.equal(store.state.deliveries.countOpen("t", "a"), 0);
    assert.deepEqual(store.commits, [[]]);
  });

  it("fails the whole batch, rows and memory, when the transaction is lost, and goes on", async () => {
    using store = setup();
    const outcomes = await Promise.allSettled([
      store.queue.submit(() => {
        store.insert(1);
        store.state.moveChainHead("t", { seq: 1, hash: "h" });
      }),
      store.queue.submit(() => {
        // What SQLite does by itself when the disk is full.
        store.exec("rollback");
        throw Object.assign(new Error("full"), { errcode: 13 });
      }),
      store.queue.submit(() => store.insert(3)),
    ]);
    for (const outcome of outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.equal(RelayError.from(outcome.reason).code, "storage_full");
    }
    assert.deepEqual(store.rows(), []);
    assert.equal(store.state.chainHead("t").seq, 0);
    assert.deepEqual(store.commits, []);
    await store.queue.submit(() => store.insert(4));
    assert.deepEqual(store.rows(), [4]);
  });

  it("notifies topics after the commit", async () => {
    using store = setup();
    await store.queue.submit(() => store.state.wake(journalTopic("t")));
    assert.deepEqual(store.commits, [[journalTopic("t")]]);
  });

  it("runs the queued jobs when it is closed, and refuses later ones", async () => {
    using store = setup();
    const queued = store.queue.submit(() => store.insert(1));
    store.queue.close(new RelayError("unavailable", "closed"));
    await queued;
    await assert.rejects(
      store.queue.submit(() => store.insert(2)),
      { code: "unavailable" },
    );
    assert.deepEqual(store.rows(), [1]);
  });
});
