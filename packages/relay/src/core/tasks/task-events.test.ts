import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { type AskedTask, askedTask } from "../../../testing/asked-task.ts";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FollowedPages } from "../../../testing/followed.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, type Principal } from "../access/principal.ts";
import { NO_SUBJECT } from "../ports/journal.ts";
import type { TaskEventsPage } from "./task-events.ts";

const KAMES = "kames@kamac" as AgentId;

async function follow(
  { core, taskId }: AskedTask,
  query: object = {},
  principal: Principal = core.lulu,
): Promise<FollowedPages<TaskEventsPage>> {
  const left = new AbortController();
  return new FollowedPages(await core.tasks.follow(principal, taskId, query, left), left);
}

function typesOf(page: TaskEventsPage | undefined): readonly string[] | undefined {
  return page?.events.map(({ type }) => type);
}

describe("following a task", () => {
  it("yields past and new events, and ends with the event that finished the task", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await using events = await follow(asked);
    assert.deepEqual(typesOf(await events.next()), ["message.accepted"]);
    const next = events.next();
    await core.tasks.reportStatus(core.zhiwei, asked.taskId, { state: "working" });
    assert.deepEqual(typesOf(await next), ["task.working"]);
    await core.tasks.complete(core.zhiwei, asked.taskId, { text: "好了" });
    const last = await events.next();
    assert.equal(typesOf(last)?.at(-1), "task.completed");
    assert.equal(last?.cursor, String(last?.events.at(-1)?.seq));
    assert.equal(await events.next(), undefined);
  });

  it("yields nothing after the end, and all events to a reader at the beginning", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await core.tasks.fail(core.zhiwei, asked.taskId, { reason: "不会" });
    await using all = await follow(asked);
    const page = await all.next();
    assert.equal(typesOf(page)?.at(-1), "task.failed");
    // The delivery of the result makes further events, which are not the task's.
    await core.mailboxes.read(core.lulu, LULU, {});
    await using rest = await follow(asked, { since: page?.cursor });
    assert.equal(await rest.next(), undefined);
    for (const [index, { seq }] of (page?.events ?? []).slice(0, -1).entries()) {
      await using cut = await follow(asked, { since: String(seq) });
      assert.deepEqual(typesOf(await cut.next()), typesOf(page)?.slice(index + 1));
    }
  });

  for (const [how, end] of Object.entries({
    canceled: ({ core, taskId }: AskedTask) => core.tasks.cancel(core.lulu, taskId, {}),
    rejected: ({ core, taskId }: AskedTask) => core.tasks.reject(core.zhiwei, taskId, { reason: "不要" }),
  })) {
    it(`ends when the task is ${how}`, async () => {
      const asked = await askedTask();
      await using _core = asked.core;
      await end(asked);
      await using events = await follow(asked);
      assert.equal(typesOf(await events.next())?.at(-1), `task.${how}`);
      assert.equal(await events.next(), undefined);
    });
  }

  it("reveals neither lease ids nor events about access", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    const { lease_id } = await core.lease({ worker: "w1" });
    const check = { type: "capability_check", atMs: 0, actor: KAMES, ...NO_SUBJECT, data: {} } as const;
    await core.store.commit({ tenant: "default", events: [{ ...check, taskId: asked.taskId }] });
    const journal = await core.journal.events(core.operator, {});
    assert.match(JSON.stringify(journal), new RegExp(lease_id));
    await using events = await follow(asked);
    const page = await events.next();
    assert.deepEqual(typesOf(page), ["message.accepted", "message.leased"]);
    assert.doesNotMatch(JSON.stringify(page), new RegExp(`${lease_id}|hash`));
    assert.deepEqual(page?.events[1]?.data, { attempt: 1, worker: "w1" });
    assert.equal(page?.events[1]?.task_id, asked.taskId);
  });

  it("yields events of its own task only", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await core.send({ type: "request", body: "另一件" });
    await using events = await follow(asked);
    assert.equal((await events.next())?.events.length, 1);
  });

  it("is allowed to parties only, while they are parties", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await core.agents.register(core.operator, { agent_id: KAMES });
    const kames = agentOf("default", KAMES);
    await refused(follow(asked, {}, kames), "not_found");
    await using events = await follow(asked, {}, core.zhiwei);
    await events.next();
    const next = events.next();
    await core.messages.send(core.zhiwei, {
      from: ZHIWEI,
      to: KAMES,
      type: "handoff",
      task_id: asked.taskId,
      body: "你来",
    });
    assert.equal(typesOf(await next)?.at(-1), "task.handed_off");
    assert.equal(await events.next(), undefined);
    await using theirs = await follow(asked, {}, kames);
    assert.ok(typesOf(await theirs.next())?.includes("task.handed_off"));
  });

  it("ends at the last handoff for an agent that handed the task over", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await core.agents.register(core.operator, { agent_id: KAMES });
    const kames = agentOf("default", KAMES);
    const handOn = async (from: AgentId, to: AgentId): Promise<void> => {
      await core.send({ from, to, type: "handoff", task_id: asked.taskId });
    };
    await handOn(ZHIWEI, KAMES);
    await handOn(KAMES, ZHIWEI);
    await core.tasks.reportStatus(core.zhiwei, asked.taskId, { state: "working" });
    await handOn(ZHIWEI, KAMES);
    await core.tasks.complete(kames, asked.taskId, { text: "好了" });
    await using events = await follow(asked, {}, core.zhiwei);
    const page = await events.next();
    const types = typesOf(page) ?? [];
    assert.equal(types.filter((type) => type === "task.handed_off").length, 3);
    assert.deepEqual([types.at(-1), page?.events.at(-1)?.actor], ["task.handed_off", ZHIWEI]);
    assert.equal(await events.next(), undefined);
    await using again = await follow(asked, { since: page?.cursor }, core.zhiwei);
    assert.equal(await again.next(), undefined);
    await refused(core.tasks.get(core.zhiwei, asked.taskId), "not_found");
  });

  it("is refused with a bad cursor, and for an unknown task", async () => {
    const asked = await askedTask();
    await using core = asked.core;
    await refused(follow(asked, { since: "x" }), "invalid_argument");
    await refused(core.tasks.follow(core.lulu, "task_none", {}, {}), "not_found");
  });
});
