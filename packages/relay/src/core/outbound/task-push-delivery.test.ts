import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { anAnswer } from "../../../testing/fake-outside.ts";
import { HOOK, KAMES, type TaskPushingCore, taskPushingCore } from "../../../testing/task-pushing-core.ts";
import { OutboundFailure } from "../../transports/egress/http-client.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

const DELIVERED = { isDelivered: true, hasMore: false };
const FAILED = { isDelivered: false, hasMore: false };
/** The attempts of the test settings. */
const GAPS_MS = [5_000, 25_000, 90_000];

/** The text of each status that was sent. */
function said(core: TaskPushingCore): readonly string[] {
  return core
    .bodies()
    .map((body) => /"text":"([^"]*)"/.exec(JSON.stringify(body["statusUpdate"]))?.[1] ?? "");
}

/** Makes all attempts of the due update. */
async function useUpAttempts(core: TaskPushingCore): Promise<void> {
  await core.push();
  for (const gapMs of GAPS_MS) {
    core.clock.advance(gapMs);
    await core.push();
  }
}

describe("an update that is pushed in 1.0", () => {
  it("is the event of the stream, with the headers of A2A and the secrets of its owner", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, { token: "tok", authentication: { scheme: "Bearer", credentials: "a.b.c" } });
    await core.works(taskId, "开始翻译 🦊");
    assert.deepEqual(await core.push(), [DELIVERED]);
    const { url, method, headers, timeoutMs, answerBytesMax } = core.outside.last;
    assert.deepEqual([url, method, timeoutMs, answerBytesMax], [HOOK, "POST", 15_000, 1_024]);
    assert.deepEqual(headers, {
      "content-type": "application/a2a+json",
      "a2a-version": "1.0",
      "user-agent": "a2a-relay/test",
      authorization: "Bearer a.b.c",
      "x-a2a-notification-token": "tok",
    });
    const task = await core.a2a.get(core.caller(), { id: taskId });
    const { contextId, status } = task;
    assert.deepEqual(core.bodies(), [{ statusUpdate: { taskId, contextId, status } }]);
    assert.equal(status.message?.parts[0]?.["text"], "开始翻译 🦊");
  });

  it("carries no secret that was not given", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, { authentication: { scheme: "Bearer" } });
    await core.works(taskId, "开始");
    await core.push();
    assert.deepEqual(Object.keys(core.outside.last.headers), ["content-type", "a2a-version", "user-agent"]);
  });

  it("comes in order, chunks of artifacts too, until the task has ended", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "开始");
    for (const text of ["甲", "乙"]) {
      const artifact = { artifactId: "译文", parts: [{ kind: "text", text }] };
      await core.tasks.addArtifact(core.zhiwei, taskId, { artifact, append: text !== "甲" });
    }
    await core.completes(taskId, "完成");
    await core.push();
    const [first, one, two, last] = core.bodies();
    assert.equal(core.bodies().length, 4);
    assert.match(JSON.stringify(first), /TASK_STATE_WORKING.*开始/);
    const chunk = (text: string) => ({ artifactId: "译文", parts: [{ text }] });
    const { contextId } = await core.a2a.get(core.caller(), { id: taskId });
    const ids = { taskId, contextId };
    assert.deepEqual(one, {
      artifactUpdate: { ...ids, artifact: chunk("甲"), append: false, lastChunk: true },
    });
    assert.deepEqual(two, {
      artifactUpdate: { ...ids, artifact: chunk("乙"), append: true, lastChunk: false },
    });
    assert.match(JSON.stringify(last), /TASK_STATE_COMPLETED.*完成/);
    const config = await core.config(taskId);
    assert.deepEqual([config.state, config.reason, config.nextAtMs], ["ended", null, null]);
  });

  it("is what happened since the configuration was made, and nothing of what its owner added itself", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.works(taskId, "以前");
    await core.tell(taskId);
    const message = { messageId: "问二", role: "ROLE_USER", taskId, parts: [{ text: "还有一句" }] };
    const configuration = { returnImmediately: true };
    await core.a2a.send(core.caller(), { message, configuration }, {});
    assert.deepEqual(await core.push(), []);
    const { afterN, nextAtMs } = await core.config(taskId);
    const [task] = await core.store.tasks.get(DEFAULT_TENANT, [taskId]);
    assert.deepEqual([afterN, nextAtMs], [task?.updateCount, null]);
    await core.works(taskId, "以后");
    await core.push();
    assert.deepEqual(said(core), ["以后"]);
  });

  it("goes to every configuration of the task, each on its schedule", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, { id: "一" });
    await core.tell(taskId, { id: "二", url: "https://down.example/" });
    core.outside.receiver = ({ url }) => anAnswer(url === HOOK ? 200 : 500);
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    await core.push();
    const sent = core.outside.requests.map(({ url }) => url);
    assert.deepEqual(sent.toSorted(), ["https://down.example/", HOOK, HOOK]);
  });
});

describe("an update that is pushed in an older dialect", () => {
  it("is the current task, as that dialect writes it", async () => {
    for (const version of ["0.3", "0.2"] as const) {
      await using core = await taskPushingCore();
      const taskId = await core.ask();
      const authentication = { scheme: "Bearer", credentials: "c" };
      await core.tell(taskId, { token: "tok", authentication }, { version });
      await core.works(taskId, "开始了");
      assert.deepEqual(await core.push(), [DELIVERED]);
      assert.deepEqual(core.outside.last.headers, {
        "content-type": "application/json",
        "user-agent": "a2a-relay/test",
        authorization: "Bearer c",
        "x-a2a-notification-token": "tok",
      });
      const [task] = core.bodies();
      assert.deepEqual([task?.["kind"], task?.["id"]], ["task", taskId]);
      const status = task?.["status"] as Readonly<Record<string, unknown>>;
      const message = status["message"] as Readonly<Record<string, unknown>>;
      assert.deepEqual([status["state"], message["role"]], ["working", "agent"]);
      assert.deepEqual(message["parts"], [{ kind: "text", text: "开始了" }]);
      assert.match(JSON.stringify(task?.["history"]), /请译成英文/);
    }
  });

  it("comes once for all updates, because the task contains them", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, {}, { version: "0.3" });
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    await core.completes(taskId, "完成");
    await core.push();
    assert.equal(core.bodies().length, 1);
    assert.match(JSON.stringify(core.bodies()[0]), /"state":"completed"/);
    assert.equal((await core.config(taskId)).state, "ended");
  });

  it("names the task as its caller of 0.1 did", async () => {
    await using core = await taskPushingCore();
    const caller = core.caller({ version: "0.1" });
    const message = { parts: [{ text: "请译成英文" }] };
    const configuration = { returnImmediately: true };
    await core.a2a.send(caller, { message, configuration, clientTaskId: "任务一" }, {});
    const made = await core.a2aPushes.create(caller, { taskId: "任务一", url: HOOK });
    assert.equal(made.taskId, "任务一");
    const [task] = await core.store.tasks.withClientId(DEFAULT_TENANT, core.lulu.agentId, "任务一");
    assert.ok(task);
    await core.works(task.id, "开始");
    await core.push();
    const [body] = core.bodies();
    assert.deepEqual(
      [body?.["id"], body?.["sessionId"], body?.["kind"]],
      ["任务一", task.threadId, undefined],
    );
  });
});

describe("an update that does not arrive", () => {
  it("is attempted on schedule, and the next one waits behind it", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => anAnswer(core.outside.requests.length <= 2 ? 503 : 200);
    const taskId = await core.ask();
    await core.tell(taskId);
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    assert.deepEqual(await core.push(), [FAILED]);
    const { waitMs } = await core.taskPushDelivery.chooseDue(new Set());
    assert.equal(waitMs, 5_000);
    core.clock.advance(4_999);
    assert.deepEqual(await core.push(), []);
    core.clock.advance(1);
    assert.deepEqual(await core.push(), [FAILED]);
    const { reason, attempts, afterN } = await core.config(taskId);
    assert.deepEqual([reason, attempts, afterN], ["the endpoint answered 503", 2, 0]);
    core.clock.advance(25_000);
    assert.deepEqual(await core.push(), [{ isDelivered: true, hasMore: true }, DELIVERED]);
    assert.deepEqual(said(core), ["甲", "甲", "甲", "乙"]);
    assert.deepEqual([(await core.config(taskId)).reason, (await core.config(taskId)).attempts], [null, 0]);
  });

  it("waits as long as its receiver asks, whatever happens to the task meanwhile", async () => {
    await using core = await taskPushingCore();
    const busy = anAnswer(429, { headers: { "retry-after": "60" } });
    core.outside.receiver = () => (core.outside.requests.length === 1 ? busy : anAnswer(200));
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "甲");
    await core.push();
    await core.works(taskId, "乙");
    core.clock.advance(59_999);
    assert.deepEqual(await core.push(), []);
    core.clock.advance(1);
    await core.push();
    assert.deepEqual(said(core), ["甲", "甲", "乙"]);
  });

  it("is given up after its attempts, and the next one is tried", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => anAnswer(core.outside.requests.length <= 4 ? 302 : 200);
    const taskId = await core.ask();
    await core.tell(taskId);
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    await useUpAttempts(core);
    assert.deepEqual(said(core), ["甲", "甲", "甲", "甲", "乙"]);
    const { state, givenUp, reason } = await core.config(taskId);
    assert.deepEqual([state, givenUp, reason], ["active", 0, null]);
  });

  it("three times in a row is the end of the configuration, which says why", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => {
      throw new OutboundFailure("unreachable", "connect ECONNREFUSED 10.1.2.3:80");
    };
    const taskId = await core.ask();
    const { id } = await core.tell(taskId);
    for (const text of ["甲", "乙", "丙", "丁"]) await core.works(taskId, text);
    for (let count = 0; count < 3; count += 1) await useUpAttempts(core);
    assert.deepEqual([...new Set(said(core))], ["甲", "乙", "丙"]);
    assert.equal(core.outside.requests.length, 12);
    const config = await core.config(taskId);
    const reason = "there was no connection to the endpoint";
    assert.deepEqual([config.state, config.reason, config.nextAtMs], ["failed", reason, null]);
    const { events } = await core.journal.events(core.operator, { type: "push.disabled" });
    const data = { config_id: id, host: "lulu.example", state: "failed", reason };
    assert.deepEqual(events[0]?.data, data);
    await core.works(taskId, "戊");
    assert.deepEqual(await core.push(), []);
    // The owner configures it again, and gets the updates that were not given up.
    core.outside.receiver = () => anAnswer(200);
    await core.tell(taskId, { id });
    await core.push();
    assert.deepEqual(said(core).slice(12), ["丁", "戊"]);
  });

  it("and was the last of the task leaves a configuration that failed", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => anAnswer(404);
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.completes(taskId, "完成");
    await useUpAttempts(core);
    const { state, reason } = await core.config(taskId);
    assert.deepEqual([state, reason, core.bodies().length], ["failed", "the endpoint answered 404", 4]);
  });

  it("because the receiver is gone is the last that is tried", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => anAnswer(410);
    const taskId = await core.ask();
    await core.tell(taskId);
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    assert.deepEqual(await core.push(), [FAILED]);
    core.clock.advance(1_000_000);
    assert.deepEqual(await core.push(), []);
    const { state, reason } = await core.config(taskId);
    assert.equal(state, "ended");
    assert.match(reason ?? "", /410/);
  });

  it("because its address may not be called says what can be done about it", async () => {
    await using core = await taskPushingCore();
    core.outside.receiver = () => {
      throw new OutboundFailure("blocked", "lulu.example is at 10.0.0.1");
    };
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "甲");
    await core.push();
    const { reason, state } = await core.config(taskId);
    assert.match(reason ?? "", /^the url is at an address that the relay does not call; .*EGRESS_ALLOW/);
    assert.doesNotMatch(reason ?? "", /10\.0\.0\.1/);
    assert.equal(state, "active");
  });
});

describe("a configuration that changes while a request is under way", () => {
  it("gets the same update at its new URL, and continues there", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const url = "https://lulu.example/new";
    const { id } = await core.tell(taskId);
    await core.works(taskId, "甲");
    core.outside.receiver = async (request) => {
      if (request.url === HOOK) await core.tell(taskId, { id, url });
      return anAnswer(200);
    };
    await core.push();
    await core.works(taskId, "乙");
    await core.push();
    assert.deepEqual(
      core.outside.requests.map((request) => request.url),
      [HOOK, url, url],
    );
    assert.deepEqual(said(core), ["甲", "甲", "乙"]);
  });

  it("stays deleted when it was deleted", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const { id } = await core.tell(taskId);
    await core.works(taskId, "甲");
    core.outside.receiver = async () => {
      await core.a2aPushes.delete(core.caller(), { taskId, id });
      return anAnswer(500);
    };
    assert.deepEqual(await core.push(), [FAILED]);
    assert.deepEqual(await core.store.taskPushes.ofTask(DEFAULT_TENANT, taskId), []);
  });

  it("misses nothing that happens to the task meanwhile", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.works(taskId, "甲");
    core.outside.receiver = async () => {
      if (core.outside.requests.length === 1) await core.works(taskId, "乙");
      return anAnswer(200);
    };
    await core.push();
    assert.deepEqual(said(core), ["甲", "乙"]);
  });

  it("is recorded once, however often it is called", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    for (const text of ["甲", "乙"]) await core.works(taskId, text);
    const [config] = (await core.taskPushDelivery.chooseDue(new Set())).due;
    assert.ok(config);
    const ended = await core.attempt(config);
    assert.ok(ended !== "idle");
    for (let count = 0; count < 3; count += 1) await core.taskPushDelivery.record(ended);
    assert.equal((await core.config(taskId)).afterN, 1);
    const failed = { ...ended, outcome: { kind: "failed", reason: "", retryAfterMs: 0 } } as const;
    await core.taskPushDelivery.record(failed);
    assert.equal((await core.config(taskId)).attempts, 0);
  });
});

describe("the owner of a configuration", () => {
  it("gets no more updates after its removal", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await core.agents.remove(core.operator, core.lulu.agentId);
    await core.works(taskId, "甲");
    assert.deepEqual([await core.push(), core.outside.requests.length], [[], 0]);
    const { state, reason } = await core.config(taskId);
    assert.equal(state, "ended");
    assert.match(reason ?? "", /takes no part/);
  });

  it("that handed the task on gets no updates of its new assignee", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, {}, { principal: core.zhiwei });
    const handoff = {
      from: core.zhiwei.agentId,
      to: KAMES,
      type: "handoff",
      task_id: taskId,
      body: "交给你",
    };
    await core.messages.send(core.zhiwei, handoff);
    const kames = { ...core.zhiwei, agentId: KAMES };
    await core.tasks.reportStatus(kames, taskId, { state: "working", text: "我来" });
    await core.push();
    assert.doesNotMatch(JSON.stringify(core.bodies()), /我来/);
    assert.equal((await core.config(taskId)).state, "ended");
  });
});
