import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toBase58 } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import {
  aQueueTask,
  aSharedTask,
  type CoreWithQueue,
  coreWithQueue,
  KAMES,
} from "../../../testing/queue-tasks.ts";
import { refused } from "../../../testing/refusal.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { publicKeyOf } from "../rules/agent-owner.ts";

async function keyOf(core: CoreWithQueue, agent: typeof LULU): Promise<string> {
  return (await publicKeyOf(core.store, DEFAULT_TENANT, agent)) ?? assert.fail("an agent without a key");
}

async function denials(core: CoreWithQueue): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { events } = await core.journal.events(core.operator, { type: "access.denied" });
  return events.map(({ actor, data }) => ({ actor, ...data }));
}

describe("a task that is sent", () => {
  it("is an ordinary request on every other wire", async () => {
    await using core = await coreWithQueue();
    const deadline_ms = core.clock.nowMs() + 60_000;
    const idempotency = { duplicate_safety: "idempotent", key: "k-1" } as const;
    const task = aQueueTask({ task_kind: "release.notes", deadline_ms, idempotency });
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, task), {
      kind: "a2a_task_queued",
      task_id: task.id,
    });
    const [item] = await core.inboxOf(ZHIWEI);
    const { from, to, type, body, ...more } = item?.message ?? assert.fail("the inbox is empty");
    assert.deepEqual([from, to, type, body], [LULU, ZHIWEI, "request", task.intent_text]);
    assert.equal(more["task_kind"], "release.notes");
    const { tasks } = await core.tasks.list(core.lulu, {});
    assert.deepEqual([tasks.length, tasks[0]?.deadline_ms, tasks[0]?.id], [1, deadline_ms, item?.task_id]);
    assert.notEqual(item?.task_id, task.id);
    const { entries } = await core.repairs.queue(core.operator, {});
    assert.equal(entries[0]?.duplicate_safety, "idempotent");
  });

  it("again, is the same task and the same answer, even once it is finished", async () => {
    await using core = await coreWithQueue();
    const task = aQueueTask();
    const first = await core.taskQueue.sendTask(core.lulu, task);
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, { ...task, parent: null }), first);
    assert.deepEqual(await core.taskQueue.sendTask(core.operator, { ...task, sender: "lulu" }), first);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    await core.finishTask();
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, task), first);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("with other content, or to another recipient, is a conflict while its id is taken", async () => {
    await using core = await coreWithQueue();
    const task = aQueueTask();
    await core.taskQueue.sendTask(core.lulu, task);
    const other = { ...task, intent_text: "别的" };
    const words = new RegExp(`^id: "${task.id}" was already used for other content`);
    await refused(core.taskQueue.sendTask(core.lulu, other), "conflict", words);
    await refused(
      core.taskQueue.sendTask(core.lulu, { ...task, recipient: KAMES }),
      "conflict",
      new RegExp(`^id: ${LULU} has another task "${task.id}"`),
    );
    assert.equal((await core.inboxOf(KAMES)).length, 0);
  });

  it("has an id of its sender: another sender may use the same", async () => {
    await using core = await coreWithQueue();
    const task = aQueueTask();
    await core.taskQueue.sendTask(core.lulu, task);
    await core.taskQueue.sendTask(core.kames, { ...task, sender: KAMES });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
  });

  it("at the same time twice, is sent once", async () => {
    await using core = await coreWithQueue();
    const task = aQueueTask();
    const answers = await Promise.all([1, 2, 3].map(() => core.taskQueue.sendTask(core.lulu, task)));
    assert.deepEqual(new Set(answers.map(({ task_id }) => task_id)), new Set([task.id]));
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });

  it("is recognised by its name and not by its idempotency key, which is about the work", async () => {
    await using core = await coreWithQueue();
    const unsafe = { idempotency: { duplicate_safety: "unsafe", key: "k" } } as const;
    await core.queueTask({ ...unsafe, intent_text: "一" });
    await core.queueTask({ ...unsafe, intent_text: "二" });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
    await core.taskQueue.sendTask(core.lulu, aSharedTask("k", { intent_text: "三" }));
    assert.equal((await core.inboxOf(ZHIWEI)).length, 3);
  });

  it("is refused with this wire's errors when a text is blank", async () => {
    await using core = await coreWithQueue();
    const key = { duplicate_safety: "unsafe", key: "  " } as const;
    await refused(
      core.queueTask({ idempotency: key }),
      "invalid_argument",
      /^invalid task: idempotency key must not be empty$/,
    );
    await refused(core.queueTask({ task_kind: " " }), "invalid_argument", /^invalid task: task_kind/);
    await refused(core.queueTask({ intent_text: "" }), "invalid_argument", /^invalid task: intent_text/);
    await refused(core.queueTask({ id: "a/b" }), "invalid_argument", /^id: /);
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
  });

  it("accepts two values of duplicate_safety only", async () => {
    await using core = await coreWithQueue();
    const idempotency = { duplicate_safety: "Idempotent", key: "k" } as never;
    await refused(
      core.queueTask({ idempotency }),
      "invalid_argument",
      /duplicate_safety: must be one of unsafe, idempotent/,
    );
  });
});

describe("the parent of a task", () => {
  it("is named by the sender's id, another sender's id, or the relay's id", async () => {
    await using core = await coreWithQueue();
    const root = await core.queueTask();
    const { lease } = await core.taskQueue.nextTask(core.zhiwei, {});
    const child = { sender: ZHIWEI, recipient: KAMES };
    // Zhiwei was given the root under lulu's name for it.
    const first = aQueueTask({ ...child, parent: root });
    const second = aQueueTask({ ...child, parent: lease?.relay_task_id ?? "" });
    const third = aQueueTask({ ...child, parent: first.id });
    for (const task of [first, second, third]) await core.taskQueue.sendTask(core.zhiwei, task);
    const { tasks } = await core.taskQueue.recentTasks(core.kames, {});
    assert.deepEqual(
      tasks.map(({ parent }) => parent),
      [root, root, first.id],
    );
    const tree = await core.tasks.tree(core.operator, lease?.relay_task_id ?? "");
    assert.deepEqual([tree.children.length, tree.children[0]?.children.length], [2, 1]);
  });

  it("need not exist any more when the same task is sent again", async () => {
    await using core = await coreWithQueue();
    const root = await core.queueTask();
    const child = aQueueTask({ parent: root });
    const first = await core.taskQueue.sendTask(core.lulu, child);
    await core.finishTask();
    await core.taskQueue.nextResult(core.lulu, {}, "now");
    assert.equal((await core.taskQueue.compact(core.operator)).dropped, 2);
    assert.deepEqual(await core.taskQueue.sendTask(core.lulu, child), first);
    const { tasks } = await core.taskQueue.recentTasks(core.lulu, {});
    assert.equal(tasks.length, 1);
  });

  it("must be a task of the sender", async () => {
    await using core = await coreWithQueue();
    await refused(core.queueTask({ parent: "nothing" }), "not_found", /^parent: there is no task nothing$/);
    const foreign = await core.queueTask();
    const [{ task_id = "" } = {}] = await core.inboxOf(ZHIWEI);
    for (const parent of [foreign, task_id]) {
      const task = aQueueTask({ sender: KAMES, parent });
      await refused(core.taskQueue.sendTask(core.kames, task), "not_found");
    }
  });
});

describe("the sender of a task", () => {
  it("is identified by its key, whatever its display name", async () => {
    await using core = await coreWithQueue();
    const pubkey = await keyOf(core, LULU);
    await core.queueTask({ sender: { display: "another@host", pubkey } });
    await core.queueTask({ sender: { display: "lulu" } });
    await core.queueTask({ sender: "lulu" });
    const { tasks } = await core.taskQueue.recentTasks(core.zhiwei, {});
    assert.deepEqual(
      tasks.map(({ sender }) => sender),
      [1, 2, 3].map(() => ({ display: LULU, pubkey })),
    );
  });

  it("is the caller only, and the journal records the attempt", async () => {
    await using core = await coreWithQueue();
    const foreignKey = await keyOf(core, KAMES);
    const unknownKey = toBase58(new Uint8Array(32).fill(7));
    const claims = [
      KAMES,
      "unknown@nowhere",
      { display: LULU, pubkey: foreignKey },
      { display: LULU, pubkey: unknownKey },
      { display: LULU, pubkey: "not a key" },
    ];
    for (const sender of claims) {
      const shown = typeof sender === "string" ? sender : sender.display;
      const why = typeof sender === "string" ? "" : `: its key is not "${sender.pubkey}"`;
      await refused(
        core.queueTask({ sender }),
        "permission_denied",
        new RegExp(
          `^a2a send rejected: task.sender "${shown}" does not match authenticated peer "${LULU}"${why}$`,
        ),
      );
    }
    assert.equal((await core.inboxOf(ZHIWEI)).length, 0);
    assert.deepEqual(
      await denials(core),
      claims.map(() => ({ actor: LULU, verb: "messages.send" })),
    );
    await core.queueTask();
  });

  it("is named by an operator, by name or by key", async () => {
    await using core = await coreWithQueue();
    const pubkey = await keyOf(core, LULU);
    await core.taskQueue.sendTask(core.operator, aQueueTask({ sender: { display: "?", pubkey } }));
    await core.taskQueue.sendTask(core.operator, aQueueTask({ sender: "lulu" }));
    const { tasks } = await core.taskQueue.recentTasks(core.lulu, {});
    assert.equal(tasks.length, 2);
    const task = aQueueTask({ sender: "unknown" });
    await refused(core.taskQueue.sendTask(core.operator, task), "unknown_agent", /^sender: /);
  });
});

describe("the recipient of a task", () => {
  it("is its key where there is one, else its name", async () => {
    await using core = await coreWithQueue();
    const pubkey = await keyOf(core, ZHIWEI);
    await core.queueTask({ recipient: { display: "anything", pubkey } });
    await core.queueTask({ recipient: { display: "zhiwei" } });
    assert.equal((await core.inboxOf(ZHIWEI)).length, 2);
  });

  it("must be a registered agent, in any of the forms of agent names", async () => {
    await using core = await coreWithQueue();
    const unknownKey = toBase58(new Uint8Array(32).fill(7));
    const send = (recipient: string | { display: string; pubkey?: string }): Promise<string> =>
      core.queueTask({ recipient });
    await refused(send("unknown@nowhere"), "unknown_agent", /^recipient: no agent is registered as/);
    await refused(
      send({ display: ZHIWEI, pubkey: unknownKey }),
      "unknown_agent",
      /^recipient: .* with the key/,
    );
    await refused(
      send({ display: ZHIWEI, pubkey: "0OIl" }),
      "invalid_argument",
      /^recipient: .* is not an Ed25519/,
    );
    await refused(send("a/b"), "invalid_argument", /^recipient: /);
    await refused(send({ display: "" }), "invalid_argument", /^recipient.display: must not be blank/);
    await refused(send(LULU), "invalid_argument", /cannot write to itself/);
  });
});
