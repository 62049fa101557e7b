import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2aError, type A2aErrorName, LIMITS } from "@a2a-relay/protocol";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import {
  asAgent,
  HOOK,
  KAMES,
  type TaskPushingCore,
  taskPushingCore,
} from "../../../testing/task-pushing-core.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

async function refusedAs(act: Promise<unknown>, name: A2aErrorName): Promise<string> {
  const reason = await act.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(reason instanceof A2aError, `${name} was expected, not ${String(reason)}`);
  assert.equal(reason.a2a, name);
  return reason.message;
}

describe("a push configuration", () => {
  it("is returned unchanged to its owner, with secrets and an id", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const said = {
      token: "令牌".length.toString(),
      authentication: { scheme: "Bearer", credentials: "a.b.c" },
      whatever: "未知",
    };
    const made = await core.tell(taskId, said);
    assert.match(made.id, /^push_/);
    const { token, authentication } = said;
    assert.deepEqual(made, { id: made.id, taskId, url: HOOK, token, authentication });
    assert.deepEqual(await core.a2aPushes.get(core.caller(), { taskId, id: made.id }), made);
    const other = await core.tell(taskId, { id: "我的配置", token: "", authentication: { scheme: "" } });
    assert.deepEqual(other, { id: "我的配置", taskId, url: HOOK });
    const { configs, nextPageToken } = await core.a2aPushes.list(core.caller(), { taskId });
    assert.deepEqual(
      [new Set(configs.map(({ id }) => id)), nextPageToken],
      [new Set([made.id, "我的配置"]), ""],
    );
    const { events } = await core.journal.events(core.operator, { type: "push.configured" });
    assert.deepEqual(
      events.map(({ data, actor, task_id }) => [data, actor, task_id]),
      [made, other].map(({ id }) => [{ config_id: id, host: "lulu.example" }, core.lulu.agentId, taskId]),
    );
  });

  it("replaces the one with its id, of the same task alone", async () => {
    await using core = await taskPushingCore();
    const [taskId, otherId] = [await core.ask(), await core.ask()];
    for (const id of [taskId, otherId]) await core.tell(id, { id: "一", token: "old" });
    const url = "https://lulu.example/new";
    await core.tell(taskId, { id: "一", url });
    const list = async (id: string) => (await core.a2aPushes.list(core.caller(), { taskId: id })).configs;
    assert.deepEqual(await list(taskId), [{ id: "一", taskId, url }]);
    assert.deepEqual(await list(otherId), [{ id: "一", taskId: otherId, url: HOOK, token: "old" }]);
  });

  it("is the only one of its task in older dialects, which need no id", async () => {
    await using core = await taskPushingCore();
    for (const version of ["0.3", "0.2", "0.1"] as const) {
      const taskId = await core.ask();
      await core.tell(taskId, { token: "first" }, { version });
      const made = await core.tell(taskId, { token: "second" }, { version });
      assert.deepEqual(made, { id: taskId, taskId, url: HOOK, token: "second" });
      const caller = core.caller({ version });
      assert.deepEqual(await core.a2aPushes.get(caller, { taskId }), made);
      assert.equal((await core.a2aPushes.list(caller, { taskId })).configs.length, 1);
      await core.a2aPushes.delete(caller, { taskId });
      await refusedAs(core.a2aPushes.get(caller, { taskId }), "TaskNotFound");
    }
  });

  it("needs an id in A2A 1.0", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId);
    await refused(core.a2aPushes.get(core.caller(), { taskId }), "invalid_argument", /id: is missing/);
    const words = await refusedAs(core.a2aPushes.get(core.caller(), { taskId, id: "没有" }), "TaskNotFound");
    assert.match(words, /没有/);
  });

  it("can be deleted twice, and gets no push afterwards", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const { id } = await core.tell(taskId);
    for (let count = 0; count < 2; count += 1) await core.a2aPushes.delete(core.caller(), { taskId, id });
    await core.works(taskId, "开始了");
    assert.deepEqual([await core.push(), core.outside.requests], [[], []]);
    const { events } = await core.journal.events(core.operator, { type: "push.removed" });
    assert.deepEqual(
      events.map(({ data }) => data),
      [{ config_id: id, host: "lulu.example" }],
    );
  });

  it("can be made for a finished task, which pushes nothing", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.completes(taskId, "译好了");
    const { id } = await core.tell(taskId);
    assert.equal((await core.a2aPushes.get(core.caller(), { taskId, id })).url, HOOK);
    assert.deepEqual(await core.push(), []);
    assert.equal((await core.config(taskId)).state, "ended");
  });

  it("is listed page by page", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const ids = ["一", "七", "三", "😀", "～", "z"];
    for (const id of ids) await core.tell(taskId, { id });
    const found: string[] = [];
    let pages = 0;
    for (let pageToken = ""; pages === 0 || pageToken !== ""; pages += 1) {
      const page = await core.a2aPushes.list(core.caller(), { taskId, pageSize: 2, pageToken });
      found.push(...page.configs.map(({ id }) => id));
      pageToken = page.nextPageToken;
    }
    assert.deepEqual([found.toSorted(), pages], [ids.toSorted(), 3]);
    const bad = core.a2aPushes.list(core.caller(), { taskId, pageToken: "!" });
    await refused(bad, "invalid_argument", /pageToken/);
  });

  it("is one of at most ten of its owner, however many are made at once", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const made = await Promise.allSettled(
      Array.from({ length: LIMITS.pushConfigsOfTaskMax + 2 }, (_, index) =>
        core.tell(taskId, { id: `配置-${index}` }),
      ),
    );
    assert.equal(made.filter(({ status }) => status === "rejected").length, 2);
    await refused(core.tell(taskId), "resource_exhausted", /10 push configurations/);
    const worker = asAgent(ZHIWEI);
    await core.tell(taskId, {}, worker);
    const [first] = (await core.a2aPushes.list(core.caller(), { taskId })).configs;
    await core.tell(taskId, { id: first?.id, token: "again" });
    await core.a2aPushes.delete(core.caller(), { taskId, id: first?.id });
    await core.tell(taskId);
  });
});

describe("the caller of a push configuration", () => {
  it("is refused a task of others, of another agent, and an unknown task", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, { id: "一" });
    const strangers = [
      { caller: core.caller(asAgent(KAMES)), taskId },
      { caller: core.caller({ agentId: KAMES }), taskId },
      { caller: core.caller(), taskId: "没有这个任务" },
    ];
    for (const { caller, taskId: named } of strangers) {
      const params = { taskId: named, id: "一" };
      await refusedAs(core.a2aPushes.create(caller, { ...params, url: HOOK }), "TaskNotFound");
      await refusedAs(core.a2aPushes.get(caller, params), "TaskNotFound");
      await refusedAs(core.a2aPushes.list(caller, params), "TaskNotFound");
      await refusedAs(core.a2aPushes.delete(caller, params), "TaskNotFound");
    }
    assert.equal(
      (await core.a2aPushes.get(core.caller({ agentId: undefined }), { taskId, id: "一" })).id,
      "一",
    );
  });

  it("alone reads and changes it: the assignee of the task cannot", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const secrets = { token: "t", authentication: { scheme: "Bearer", credentials: "c" } };
    await core.tell(taskId, { id: "一", ...secrets });
    const worker = core.caller(asAgent(ZHIWEI));
    await refusedAs(core.a2aPushes.get(worker, { taskId, id: "一" }), "TaskNotFound");
    assert.deepEqual((await core.a2aPushes.list(worker, { taskId })).configs, []);
    await core.a2aPushes.delete(worker, { taskId, id: "一" });
    const theirs = { taskId, id: "一", url: "https://zhiwei.example/" };
    await refused(core.a2aPushes.create(worker, theirs), "conflict", /another party/);
    // An operator sees that there is one, and no secret.
    const operator = core.caller({ principal: core.operator });
    const seen = await core.a2aPushes.get(operator, { taskId, id: "一" });
    assert.deepEqual(seen, { id: "一", taskId, url: HOOK, authentication: { scheme: "Bearer" } });
    assert.equal((await core.a2aPushes.get(core.caller(), { taskId, id: "一" })).token, "t");
    await core.a2aPushes.delete(operator, { taskId, id: "一" });
    await refusedAs(core.a2aPushes.get(core.caller(), { taskId, id: "一" }), "TaskNotFound");
  });

  it("is refused where the agent's card says that it does not push, whatever the task", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const agent_card = { name: "知微", capabilities: { pushNotifications: false } };
    await core.agents.register(core.zhiwei, { agent_id: ZHIWEI, agent_card });
    const params = { id: "一", url: HOOK };
    for (const named of [taskId, "没有这个任务"]) {
      for (const verb of ["create", "get", "list", "delete"] as const) {
        const asked = core.a2aPushes[verb](core.caller(), { taskId: named, ...params });
        await refusedAs(asked, "PushNotificationNotSupported");
      }
    }
    const atRelay = core.caller({ agentId: undefined });
    await refusedAs(core.a2aPushes.create(atRelay, { taskId, ...params }), "PushNotificationNotSupported");
    await refusedAs(core.a2aPushes.check(core.caller(), params), "PushNotificationNotSupported");
  });

  for (const [what, said, words] of [
    ["an address inside", { url: "http://10.0.0.1:9/" }, /does not call/],
    ["the metadata of a cloud", { url: "http://169.254.169.254/latest" }, /does not call/],
    ["an address in disguise", { url: "http://[::ffff:10.0.0.1]/" }, /does not call/],
    ["an address of this network", { url: "http://[fd00::1]/" }, /does not call/],
    ["another scheme", { url: "file:///etc/passwd" }, /http or https/],
    ["a user in the URL", { url: "https://user:pass@lulu.example/" }, /http or https/],
    ["no URL", { url: undefined }, /url is missing|url: /],
    ["a token that ends its header", { token: "a\r\nx-evil: 1" }, /./],
    ["a token that no header carries", { token: "令牌" }, /token: .*ASCII/],
    ["credentials without a scheme", { authentication: { credentials: "c" } }, /authentication.scheme/],
    ["a scheme of two words", { authentication: { scheme: "Bearer x" } }, /authentication.scheme/],
    ["blank credentials", { authentication: { scheme: "Bearer", credentials: " " } }, /credentials: .*ASCII/],
  ] as const) {
    it(`is refused ${what}, also where it comes with a message, and nothing is kept`, async () => {
      await using core = await taskPushingCore();
      const taskId = await core.ask();
      const { url: _, ...rest } = { url: HOOK, ...said };
      const wish = said !== null && "url" in said && said.url === undefined ? rest : { url: HOOK, ...said };
      await refused(core.a2aPushes.create(core.caller(), { taskId, ...wish }), "invalid_argument", words);
      await refused(core.a2aPushes.check(core.caller(), wish), "invalid_argument", words);
      assert.deepEqual(await core.store.taskPushes.ofTask(DEFAULT_TENANT, taskId), []);
    });
  }

  it("is refused what is too long, and a refusal repeats no secret", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const long = "s".repeat(LIMITS.pushCredentialCharsMax + 1);
    for (const said of [{ token: long }, { authentication: { scheme: "Bearer", credentials: long } }]) {
      await refused(core.tell(taskId, said), "too_large");
    }
    const { message } = await refused(core.tell(taskId, { token: "秘密 " }), "invalid_argument");
    assert.doesNotMatch(message, /秘密/);
    await refused(core.tell(taskId, { id: "一".repeat(LIMITS.idCharsMax + 1) }), "too_large");
  });
});

describe("a push configuration that comes with a message", () => {
  it("gets the updates since the message, though it is written later, and is made once", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.completes(taskId, "已经译好了");
    const [task] = await core.store.tasks.get(DEFAULT_TENANT, [taskId]);
    assert.ok(task);
    await core.a2aPushes.check(core.caller(), { url: HOOK });
    for (let count = 0; count < 2; count += 1) {
      await core.a2aPushes.attach(core.caller(), task, { url: HOOK }, 0);
      const { configs } = await core.a2aPushes.list(core.caller(), { taskId });
      assert.deepEqual(configs, [{ id: taskId, taskId, url: HOOK }]);
    }
    await core.push();
    assert.match(JSON.stringify(core.bodies().at(-1)), /已经译好了/);
    assert.deepEqual([core.bodies().length, (await core.config(taskId)).state], [task.updateCount, "ended"]);
    await core.a2aPushes.attach(core.caller(), task, { url: HOOK }, 0);
    assert.deepEqual(await core.push(), [], "sent again, it goes on where it was");
  });

  /** Lulu adds to the task and configures a push with the same message. */
  async function adds(core: TaskPushingCore, taskId: string, config: object): Promise<unknown> {
    const message = { messageId: "又问", role: "ROLE_USER", parts: [{ text: "快一点" }], taskId };
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: HOOK, ...config } };
    return core.a2a.send(core.caller(), { message, configuration }, {});
  }

  it("is refused before the message is sent, where there is no room for it or its id is another's", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    await core.tell(taskId, { id: "知微的" }, asAgent(ZHIWEI));
    const sent = async () => (await core.inboxOf(ZHIWEI)).length;
    const before = await sent();
    await refused(adds(core, taskId, { id: "知微的" }), "conflict", /another party/);
    for (let index = 0; index < LIMITS.pushConfigsOfTaskMax; index += 1) {
      await core.tell(taskId, { id: `${index}` });
    }
    await refused(adds(core, taskId, {}), "resource_exhausted", /10 push configurations/);
    assert.equal(await sent(), before);
    await adds(core, taskId, { id: "3", token: "t" });
    assert.equal(await sent(), before + 1);
    assert.equal((await core.a2aPushes.get(core.caller(), { taskId, id: "3" })).token, "t");
  });

  it("is accepted though the assignee has used up its own limit and the fallback id", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const worker = asAgent(ZHIWEI);
    await core.tell(taskId, { id: taskId }, worker);
    for (let index = 1; index < LIMITS.pushConfigsOfTaskMax; index += 1) await core.tell(taskId, {}, worker);
    await refused(core.tell(taskId, {}, worker), "resource_exhausted");
    for (let count = 0; count < 2; count += 1) await adds(core, taskId, {});
    const { configs } = await core.a2aPushes.list(core.caller(), { taskId });
    assert.deepEqual(
      configs.map(({ id, url }) => [id === taskId, url]),
      [[false, HOOK]],
    );
  });

  it("fails nothing once the message is sent; the journal records that it came too late", async () => {
    await using core = await taskPushingCore();
    const taskId = await core.ask();
    const [task] = await core.store.tasks.get(DEFAULT_TENANT, [taskId]);
    assert.ok(task);
    await core.tell(taskId, { id: "一" }, asAgent(ZHIWEI));
    await core.a2aPushes.attach(core.caller(), task, { url: HOOK, id: "一" }, 0);
    assert.equal((await core.store.taskPushes.get(DEFAULT_TENANT, taskId, "一"))?.owner, ZHIWEI);
    const { events } = await core.journal.events(core.operator, { type: "push.disabled" });
    const [event] = events;
    assert.deepEqual(
      [event?.task_id, event?.data["config_id"], event?.data["state"]],
      [taskId, "一", "failed"],
    );
    assert.match(String(event?.data["reason"]), /another party/);
  });
});
