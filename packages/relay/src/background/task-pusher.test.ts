import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentId, LIMITS } from "@a2a-relay/protocol";
import { ZHIWEI } from "../../testing/core-on-memory.ts";
import { anAnswer } from "../../testing/fake-outside.ts";
import { answering, FakeNames, OK, openOutsideServer } from "../../testing/outside-network.ts";
import {
  asAgent,
  HOOK,
  KAMES,
  type TaskPushingCore,
  taskPushingCore,
} from "../../testing/task-pushing-core.ts";
import { agentOf, DEFAULT_TENANT, operatorOf, rootOperator } from "../core/access/principal.ts";
import { TASK_PUSHES_TOPIC } from "../core/ports/change-feed.ts";
import { EgressPolicy } from "../core/rules/egress-policy.ts";
import type { OutboundRequest } from "../transports/egress/http-client.ts";
import { GuardedOutbound } from "../transports/egress/guarded-outbound.ts";
import { startBackgroundWork } from "./background-work.ts";
import { TaskPusher } from "./task-pusher.ts";

const TICKS_MAX = 100_000;

function report(reason: unknown): void {
  assert.fail(String(reason));
}

/** The text of each status, in the order it was sent. */
function said(
  { outside }: TaskPushingCore,
  isMeant: (request: OutboundRequest) => boolean = () => true,
): readonly string[] {
  return outside.requests.filter(isMeant).map(({ body }) => /"text":"([^"]*)"/.exec(body ?? "")?.[1] ?? "");
}

/** Resolves when the condition holds. */
async function until(core: TaskPushingCore, isSo: () => Promise<boolean>): Promise<void> {
  for (let tick = 0; tick < TICKS_MAX; tick += 1) {
    if (await isSo()) return;
    await core.clock.nextTurn();
  }
  assert.fail("it never happened");
}

describe("the task pusher", () => {
  it("sends what is due when it starts, new updates at once, and all in order", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "第 0 步");
    await using _ = new TaskPusher(core, report);
    await core.outside.arrived(1);
    for (let step = 1; step < 20; step += 1) await core.works(taskId, `第 ${step} 步`);
    await core.completes(taskId, "完成");
    await core.outside.arrived(21);
    const steps = Array.from({ length: 20 }, (_unused, step) => `第 ${step} 步`);
    assert.deepEqual(said(core), [...steps, "完成"]);
    await until(core, async () => (await core.config(taskId)).state === "ended");
  });

  it("is part of the background work, and finds configurations of every tenant", async () => {
    await using core = await taskPushingCore();
    const settings = { sweepIntervalMs: 60_000, anchorIntervalMs: 60_000, retryScheduler: undefined };
    await using _ = startBackgroundWork(core, settings, report);
    const studio = operatorOf("工作室");
    await core.keys.create(rootOperator(), { tenant: studio.tenant });
    await core.agents.register(studio, { agent_id: ZHIWEI });
    const caller = core.caller({ principal: studio });
    const message = { messageId: "一", role: "ROLE_USER", parts: [{ text: "你好" }] };
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: HOOK } };
    const { task } = await core.a2a.send(caller, { message, configuration }, {});
    assert.ok(task);
    await core.tasks.reportStatus(studio, task.id, { state: "working", text: "工作室在做" });
    await core.outside.arrived(1);
    assert.deepEqual(said(core), ["工作室在做"]);
  });

  it("is not delayed by receivers that hang, and leaves permits to other tenants however many do", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = (request) =>
      request.url === HOOK ? anAnswer(200) : core.outside.hanging(request);
    await using _ = new TaskPusher(core, report);
    const owners = Math.ceil(LIMITS.pushesUnderWayMax / LIMITS.taskPushesOfOwnerMax) + 1;
    for (let owner = 0; owner < owners; owner += 1) {
      const asker = { principal: agentOf(DEFAULT_TENANT, `asker-${owner}` as AgentId) };
      await core.agents.register(core.operator, { agent_id: asker.principal.agentId });
      for (let count = 0; count < LIMITS.taskPushesOfOwnerMax / LIMITS.pushConfigsOfTaskMax; count += 1) {
        const taskId = await core.ask(asker);
        for (let index = 0; index < LIMITS.pushConfigsOfTaskMax; index += 1) {
          await core.tell(taskId, { id: `${index}`, url: `https://hanging-${index}.example/` }, asker);
        }
        await core.works(taskId, "没人听");
      }
    }
    await core.outside.arrived(20);
    const studio = operatorOf("工作室");
    await core.keys.create(rootOperator(), { tenant: studio.tenant });
    await core.agents.register(studio, { agent_id: ZHIWEI });
    const message = { messageId: "一", role: "ROLE_USER", parts: [{ text: "你好" }] };
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: HOOK } };
    const { task } = await core.a2a.send(core.caller({ principal: studio }), { message, configuration }, {});
    assert.ok(task);
    await core.tasks.reportStatus(studio, task.id, { state: "working", text: "轮到我" });
    await until(core, async () => said(core, ({ url }) => url === HOOK).length > 0);
    assert.ok(core.outside.requests.length < LIMITS.pushesUnderWayMax);
  });

  it("pushes to other agents and other receivers, though hundreds wait for one that hangs", async () => {
    await using core = await taskPushingCore();
    const isTarpit = ({ url }: OutboundRequest): boolean => url.startsWith("https://tarpit.example/");
    core.outside.receiver = (request) => (isTarpit(request) ? core.outside.hanging(request) : anAnswer(200));
    for (let count = 0; count < 60; count += 1) {
      const taskId = await core.ask();
      for (let index = 0; index < LIMITS.pushConfigsOfTaskMax; index += 1) {
        await core.tell(taskId, { id: `${index}`, url: `https://tarpit.example/${count}/${index}` });
      }
      await core.works(taskId, "没人听");
    }
    await using _ = new TaskPusher(core, report);
    await core.outside.arrived(LIMITS.taskPushesOfReceiverMax);
    const own = await core.ask();
    await core.tell(own);
    await core.works(own, "自己的");
    const kames = asAgent(KAMES);
    const other = await core.ask(kames);
    await core.tell(other, { url: "https://kames.example/" }, kames);
    await core.works(other, "别人的");
    const isRead = (request: OutboundRequest): boolean => !isTarpit(request);
    await until(core, async () => said(core, isRead).length === 2);
    assert.deepEqual(new Set(said(core, isRead)), new Set(["自己的", "别人的"]));
    assert.equal(core.outside.requests.filter(isTarpit).length, LIMITS.taskPushesOfReceiverMax);
  });

  it("records no attempt for requests under way when it stops, and the next one continues without a gap", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    for (const text of ["甲", "乙", "丙"]) await core.works(taskId, text);
    core.outside.receiver = (request) =>
      core.outside.requests.length === 2 ? core.outside.hanging(request) : anAnswer(200);
    {
      await using _ = new TaskPusher(core, report);
      await core.outside.arrived(2);
    }
    const { afterN, attempts } = await core.config(taskId);
    assert.deepEqual([afterN, attempts], [1, 0]);
    await core.works(taskId, "丁");
    await using _ = new TaskPusher(core, report);
    await core.outside.arrived(5);
    assert.deepEqual(said(core), ["甲", "乙", "乙", "丙", "丁"]);
  });

  it("retries on schedule", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => anAnswer(core.outside.requests.length === 1 ? 500 : 200);
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "甲");
    await using _ = new TaskPusher(core, report);
    await until(core, async () => (await core.config(taskId)).attempts === 1);
    core.clock.advance(5_000);
    // The fake clock wakes no timer, so another change has to.
    await core.tell(await core.ask());
    await core.outside.arrived(2);
    assert.deepEqual(said(core), ["甲", "甲"]);
  });

  it("calls no blocked address, though the name was allowed when it was configured", async () => {
    await using core = await taskPushingCore();
    await using server = await openOutsideServer(answering(OK));
    const names = new FakeNames();
    names.set("lulu.example", ["127.0.0.1"]);
    await using guarded = new GuardedOutbound({ policy: new EgressPolicy([]), resolve: names.resolve });
    core.outside.receiver = (request) => guarded.request(request);
    const taskId = await core.ask();
    await core.tell(taskId, { url: `http://lulu.example:${server.port}/` });
    await core.works(taskId, "甲");
    await using _ = new TaskPusher(core, report);
    await until(core, async () => (await core.config(taskId)).attempts === 1);
    assert.match((await core.config(taskId)).reason ?? "", /does not call/);
    assert.deepEqual([names.asked, server.connections.length], [["lulu.example"], 0]);
  });

  it("works though readers use up all watches", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const watches: Disposable[] = [];
    for (let count = 0; count < LIMITS.waitsMax; count += 1) {
      watches.push(core.store.feed.watch(TASK_PUSHES_TOPIC));
    }
    await core.tell(taskId);
    await core.works(taskId, "甲");
    await using _ = new TaskPusher(core, report);
    await core.outside.arrived(1);
    for (const watch of watches) watch[Symbol.dispose]();
  });

  it("reports a failure of the relay itself, backs off, and stops without waiting", async () => {
    await using core = await taskPushingCore();
    const [broken, sound] = [await core.ask(), await core.ask()];
    await core.tell(broken, { url: "https://broken.example/" });
    await core.tell(sound);
    const failed = Promise.withResolvers<unknown>();
    let reports = 0;
    core.outside.receiver = ({ url }) => {
      if (url !== HOOK) throw new Error("the disk is full");
      return anAnswer(200);
    };
    await using _ = new TaskPusher(core, (reason) => {
      reports += 1;
      failed.resolve(reason);
    });
    await core.works(broken, "甲");
    assert.match(String(await failed.promise), /disk is full/);
    await core.works(sound, "乙");
    await until(core, async () => said(core).includes("乙"));
    assert.equal(reports, 1);
    assert.equal((await core.store.taskPushes.ofTask(DEFAULT_TENANT, broken))[0]?.attempts, 0);
  });
});
