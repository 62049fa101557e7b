import assert from "node:assert/strict";
import { expiryAt } from "../../../testing/records.ts";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { DAY_MS, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import {
  anOkResult,
  aSharedTask,
  type CoreWithQueue,
  coreWithQueue,
  KAMES,
} from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

/** One task with the key `k-1` that was done and whose result was taken. */
async function doneOnce(said: object = {}): Promise<CoreWithQueue & { readonly first: string }> {
  const core = await coreWithQueue();
  const task = aSharedTask("k-1", said);
  await core.taskQueue.sendTask(core.lulu, task);
  await core.finishTask("第一次的答案");
  await core.taskQueue.nextResult(core.lulu, {}, "now");
  return { ...core, first: task.id };
}

async function share(core: CoreWithQueue, key: string, said: object = {}): Promise<string> {
  return (await core.taskQueue.sendTask(core.lulu, aSharedTask(key, said))).task_id;
}

async function isDelivered(core: CoreWithQueue, id: string): Promise<boolean> {
  const { tasks } = await core.taskQueue.recentTasks(core.zhiwei, { limit: 100 });
  return tasks.some((task) => task.id === id) && (await core.inboxOf(ZHIWEI)).length > 0;
}

/** The results that the sender can take now. */
async function results(core: CoreWithQueue): Promise<readonly (readonly unknown[])[]> {
  const { results: pending } = await core.taskQueue.recentResults(core.lulu, {});
  return pending.map(({ task_id, status, content }) => [task_id, status, content]);
}

const ANSWER = [{ type: "text", text: "第一次的答案" }];

describe("work that was done before under the same key", () => {
  it("is not done again: its result comes at once, under the new id", async () => {
    await using core = await doneOnce();
    const again = await share(core, "k-1");
    assert.equal(await isDelivered(core, again), false);
    assert.deepEqual(await results(core), [[again, "ok", ANSWER]]);
    assert.equal((await core.takeTask()).id, "");
  });

  it("is completed, with receipts and an event that say how", async () => {
    await using core = await doneOnce();
    const again = await share(core, "k-1");
    const [source] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, core.first);
    const [replayed] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, again);
    const task = await core.tasks.get(core.lulu, replayed?.id ?? "");
    assert.deepEqual([task.state, task.result_status, task.assignee], ["completed", "ok", ZHIWEI]);
    const { delivery, receipts } = await core.messages.get(core.lulu, task.message_id);
    assert.equal(delivery?.state, "withdrawn");
    assert.equal(
      delivery?.reason,
      `answered with the result of task ${source?.id}, which asked for the same`,
    );
    assert.deepEqual(
      receipts.map(({ stage }) => stage),
      ["accepted", "withdrawn", "replied"],
    );
    const { events } = await core.journal.events(core.operator, { type: "task.replayed" });
    assert.deepEqual(
      [events.length, events[0]?.task_id, events[0]?.data["replay_of"]],
      [1, task.id, source?.id],
    );
    const [item] = await core.inboxOf(LULU);
    assert.deepEqual([item?.message.from, item?.message["replay_of"]], [ZHIWEI, source?.id]);
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });

  it("is the same work whatever its words, where it has a kind", async () => {
    await using core = await doneOnce({ task_kind: "translate", intent_text: "翻译" });
    const other = await share(core, "k-1", { task_kind: "translate", intent_text: "请翻译一下" });
    assert.equal(await isDelivered(core, other), false);
    const otherKind = await share(core, "k-1", { task_kind: "summarize", intent_text: "翻译" });
    assert.equal(await isDelivered(core, otherKind), true);
  });

  it("is other work when the words differ and there is no kind, or the key, or the agents", async () => {
    await using core = await doneOnce();
    assert.equal(await isDelivered(core, await share(core, "k-1", { intent_text: "别的" })), true);
    assert.equal(await isDelivered(core, await share(core, "k-2")), true);
    await core.taskQueue.sendTask(core.lulu, aSharedTask("k-1", { recipient: KAMES }));
    assert.equal((await core.inboxOf(KAMES)).length, 1);
    await core.taskQueue.sendTask(core.kames, aSharedTask("k-1", { sender: KAMES }));
    assert.deepEqual((await core.taskQueue.recentResults(core.kames, {})).results, []);
  });

  it("is known by its key without the blanks around it; a key of nothing but blanks is none", async () => {
    await using core = await doneOnce();
    assert.equal(await isDelivered(core, await share(core, "  k-1 ")), false);
    await refused(
      share(core, "   "),
      "invalid_argument",
      /^invalid task: idempotency key must not be empty$/,
    );
  });

  it("is done again where its sender did not say that it may be shared", async () => {
    await using core = await coreWithQueue();
    const unsafe = { idempotency: { duplicate_safety: "unsafe", key: "k" } } as const;
    await core.queueTask(unsafe);
    await core.finishTask();
    const again = await core.queueTask(unsafe);
    assert.equal(await isDelivered(core, again), true);
    assert.equal(await isDelivered(core, await share(core, "k")), true);
  });

  for (const status of ["error", "partial"]) {
    it(`is done again when its result was ${status}`, async () => {
      await using core = await coreWithQueue();
      await share(core, "k-1");
      const { id } = await core.takeTask();
      await core.taskQueue.postResult(core.zhiwei, { ...anOkResult(id), status });
      assert.equal(await isDelivered(core, await share(core, "k-1")), true);
    });
  }

  it("is done again when its result had an error message, or was too long to remember", async () => {
    await using core = await coreWithQueue();
    await share(core, "k-1");
    const warned = { ...anOkResult((await core.takeTask()).id), error_message: "有警告" };
    await core.taskQueue.postResult(core.zhiwei, warned);
    assert.equal(await isDelivered(core, await share(core, "k-1")), true);
    const { id } = await core.takeTask();
    const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, id);
    const artifact = { parts: [{ text: "x".repeat(LIMITS.bodyBytesMax) }] };
    await core.tasks.addArtifact(core.operator, task?.id ?? "", {
      artifact,
      lease_id: await leaseOf(core, id),
    });
    await core.taskQueue.postResult(core.zhiwei, anOkResult(id));
    assert.equal(await isDelivered(core, await share(core, "k-1")), true);
  });

  it("is shared however it was answered: by message, over another wire, with artifacts", async () => {
    await using core = await coreWithQueue();
    await share(core, "by message");
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    const reply = {
      to: LULU,
      type: "reply",
      reply_to: lease?.message_id,
      lease_id: lease?.lease_id,
    } as const;
    await core.messages.send(core.zhiwei, { ...reply, body: "回信" });
    const first = await share(core, "by message");
    await share(core, "with artifacts");
    const second = (await core.taskQueue.nextTask(core.zhiwei, {})).lease;
    const artifacts = [{ parts: [{ kind: "data", data: { n: 1 } }] }];
    const ending = { artifacts, text: "见附件", lease_id: second?.lease_id };
    await core.tasks.complete(core.zhiwei, second?.relay_task_id ?? "", ending);
    const third = await share(core, "with artifacts");
    const all = await results(core);
    assert.deepEqual(all.find(([id]) => id === first)?.[2], [{ type: "text", text: "回信" }]);
    assert.deepEqual(all.find(([id]) => id === third)?.[2], [
      { type: "text", text: "见附件" },
      { type: "json", value: { n: 1 } },
    ]);
    const [replayed] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, third);
    assert.equal((await core.tasks.get(core.lulu, replayed?.id ?? "")).artifacts.length, 1);
  });

  it("is shared between wires", async () => {
    await using core = await doneOnce({ intent_text: "同一件事" });
    const idempotency = { duplicate_safety: "idempotent", key: "k-1" } as const;
    const { receipt } = await core.send({ type: "request", body: "同一件事", idempotency });
    assert.equal((await core.delivery(receipt.message_id)).state, "withdrawn");
    assert.deepEqual(await results(core), [[receipt.task_id, "ok", ANSWER]]);
  });

  it("is remembered for its time and no longer, and a replay does not make it younger", async () => {
    await using core = await doneOnce();
    core.clock.advance(LIMITS.cachedResultKeptMs - 1);
    assert.equal(await isDelivered(core, await share(core, "k-1")), false);
    core.clock.advance(1);
    assert.equal(await isDelivered(core, await share(core, "k-1")), true);
  });

  it("is forgotten when there are too many, the oldest first", async () => {
    await using core = await doneOnce();
    core.clock.advance(1_000);
    await share(core, "k-2");
    await core.finishTask("第二个答案");
    assert.equal(
      await core.store.retention.forgetExpired(expiryAt(core.clock.nowMs(), { cachedResultsMax: 1 })),
      1,
    );
    assert.equal(await isDelivered(core, await share(core, "k-2")), false);
    assert.equal(await isDelivered(core, await share(core, "k-1")), true);
    core.clock.advance(LIMITS.cachedResultKeptMs);
    await core.retention.step(DEFAULT_TENANT);
    assert.equal(
      await core.store.retention.forgetExpired(expiryAt(core.clock.nowMs(), { cachedResultsMax: 0 })),
      0,
    );
  });

  it("is remembered also after retention removed the task", async () => {
    await using core = await doneOnce();
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 2);
    assert.equal(await isDelivered(core, await share(core, "k-1")), false);
    assert.deepEqual((await results(core))[0]?.[2], ANSWER);
  });

  it("is asked for again under the same name with the same answer, as every task is", async () => {
    await using core = await doneOnce();
    const task = aSharedTask("k-1");
    const first = await core.taskQueue.sendTask(core.lulu, task);
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, task), first);
    assert.equal((await results(core)).length, 1);
  });
});

async function leaseOf(core: CoreWithQueue, id: string): Promise<string | undefined> {
  const { tasks } = await core.taskQueue.queue(core.operator, { state_filter: "in_flight", limit: 100 });
  return tasks.find(({ task }) => task.id === id)?.lease_id;
}

describe("work that is under way under the same key", () => {
  it("is not leased twice: the second requester gets the first one's result", async () => {
    await using core = await coreWithQueue();
    const first = await share(core, "k-1");
    const second = await share(core, "k-1");
    const third = await share(core, "k-1");
    assert.equal((await core.takeTask()).id, first);
    assert.equal((await core.takeTask()).id, "");
    await core.sweep.step();
    assert.deepEqual(await results(core), []);
    await core.taskQueue.postResult(core.zhiwei, anOkResult(first, "第一次的答案"));
    await core.sweep.step();
    assert.deepEqual(await results(core), [
      [first, "ok", ANSWER],
      [second, "ok", ANSWER],
      [third, "ok", ANSWER],
    ]);
    assert.equal((await core.takeTask()).id, "");
    assert.equal((await core.journal.verify(core.operator)).ok, true);
  });

  it("is seen in the queue, and its receipt says what it waits for", async () => {
    await using core = await coreWithQueue();
    const first = await share(core, "k-1");
    const second = await share(core, "k-1");
    const { tasks } = await core.taskQueue.queue(core.lulu, {});
    assert.deepEqual(
      tasks.map(({ state, task }) => [state, task.id]),
      [
        ["queued", first],
        ["queued", second],
      ],
    );
    const [source] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, first);
    const [waiting] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, second);
    const { delivery } = await core.messages.get(core.lulu, waiting?.messageId ?? "");
    assert.deepEqual(
      [delivery?.state, delivery?.reason],
      ["held", `waits for the result of task ${source?.id}, which asks for the same`],
    );
    await core.takeTask();
    await refused(core.taskQueue.postResult(core.zhiwei, anOkResult(second)), "lease_required");
  });

  const badEnds: Readonly<Record<string, (core: CoreWithQueue, id: string) => Promise<unknown>>> = {
    "an error": (core, id) => core.taskQueue.postResult(core.zhiwei, { task_id: id, status: "error" }),
    "half a result": (core, id) => core.taskQueue.postResult(core.zhiwei, { task_id: id, status: "partial" }),
    "a forced error": (core, id) =>
      core.taskQueue.repair(core.operator, {
        task_id: id,
        reason: "gone",
        command: { action: "force_error", message: "gone" },
      }),
    "a cancellation": async (core, id) => {
      const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, id);
      await core.tasks.cancel(core.lulu, task?.id ?? "", {});
    },
  };
  for (const [name, end] of Object.entries(badEnds)) {
    it(`is the next to be done when the first one ends with ${name}`, async () => {
      await using core = await coreWithQueue();
      const first = await share(core, "k-1");
      const second = await share(core, "k-1");
      const third = await share(core, "k-1");
      await core.takeTask();
      await end(core, first);
      await core.sweep.step();
      const [next] = await core.inboxOf(ZHIWEI);
      assert.equal((await core.delivery(next?.message_id ?? "")).reason, undefined);
      assert.equal((await core.takeTask()).id, second);
      assert.equal((await core.takeTask()).id, "");
      await core.taskQueue.postResult(core.zhiwei, anOkResult(second, "第一次的答案"));
      await core.sweep.step();
      const shared = (await results(core)).filter(([id]) => id === second || id === third);
      assert.deepEqual(shared, [
        [second, "ok", ANSWER],
        [third, "ok", ANSWER],
      ]);
    });
  }

  it("is not waited for longer than its own time: it expires, and its deadline passes", async () => {
    await using core = await coreWithQueue();
    await share(core, "k-1");
    const due = await share(core, "k-1", { deadline_ms: core.clock.nowMs() + 1_000 });
    core.clock.advance(DAY_MS);
    const other = await share(core, "k-1");
    await core.takeTask();
    await core.sweep.step();
    assert.deepEqual(
      (await results(core)).map(([id, status]) => [id, status]),
      [[due, "error"]],
    );
    core.clock.advance(7 * DAY_MS);
    await core.sweep.step();
    const { results: pending } = await core.taskQueue.recentResults(core.lulu, {});
    assert.deepEqual(
      pending.map(({ task_id, error_message }) => [task_id, /expired/.test(error_message ?? "")]),
      [[other, true]],
    );
  });

  it("may be canceled while it waits", async () => {
    await using core = await coreWithQueue();
    const first = await share(core, "k-1");
    const second = await share(core, "k-1");
    const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, LULU, second);
    await core.tasks.cancel(core.lulu, task?.id ?? "", {});
    await core.takeTask();
    await core.taskQueue.postResult(core.zhiwei, anOkResult(first));
    await core.sweep.step();
    assert.deepEqual(
      (await results(core)).map(([id, status]) => [id, status]),
      [
        [second, "error"],
        [first, "ok"],
      ],
    );
  });

  it("is told apart also when all ask at the same time", async () => {
    await using core = await coreWithQueue();
    await Promise.all(Array.from({ length: 8 }, () => share(core, "k-1")));
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    const { id } = await core.takeTask();
    await Promise.all([core.taskQueue.postResult(core.zhiwei, anOkResult(id)), share(core, "k-1")]);
    await core.sweep.step();
    assert.equal((await results(core)).length, 9);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("is not waited for when it ends while another requester asks for the same", async () => {
    await using core = await coreWithQueue();
    const first = await share(core, "k-1");
    await core.takeTask();
    const { store } = core;
    const commit = store.commit.bind(store);
    store.commit = async (changes) => {
      // The send has decided to wait. The first task ends before that decision is committed.
      store.commit = commit;
      await core.taskQueue.postResult(core.zhiwei, anOkResult(first));
      return commit(changes);
    };
    const second = await share(core, "k-1");
    assert.deepEqual(
      (await results(core)).map(([id]) => id),
      [first, second],
    );
  });

  it("is released however many tasks wait", async () => {
    await using core = await coreWithQueue({ mailboxOpenMax: 10_000 });
    for (let count = 0; count < 250; count += 1) await share(core, "stuck");
    const first = await share(core, "k-1");
    const second = await share(core, "k-1");
    await core.takeTask();
    assert.equal((await core.takeTask()).id, first);
    await core.taskQueue.postResult(core.zhiwei, anOkResult(first));
    for (const _ of [1, 2]) await core.sweep.step();
    assert.deepEqual(
      (await results(core)).map(([id]) => id),
      [first, second],
    );
  });
});
