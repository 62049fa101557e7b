import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { A2aRelay } from "../support/a2a-relay.ts";
import { MailboxAgent, type TaskWork } from "../support/mailbox-agent.ts";
import { collect, type EventJson, SDK_CLIENTS, SdkClient, userMessage } from "../support/sdk-client.ts";

const ZHIWEI = "zhiwei@known-blocks1";
const AWAY = "away@known-blocks1";

/** Does what the first word says, and keeps in mind what it asked. */
function scriptedWork(): (work: TaskWork) => Promise<void> {
  const asked = new Map<string, string>();
  return async (work) => {
    const question = asked.get(work.taskId);
    if (question !== undefined) return work.complete({ text: `${question}：${work.text}` });
    switch (work.text.split(" ", 1)[0]) {
      case "ask":
        asked.set(work.taskId, "收到");
        return work.ask({ text: "哪一天？" });
      case "auth":
        asked.set(work.taskId, "通过");
        return work.ask({ parts: [{ text: "请登录" }, { url: "https://login.example/" }] }, "auth-required");
      case "reject":
        return work.reject({ reason: "不做这个" });
      case "fail":
        return work.fail({ reason: "磁盘满了" });
      case "plain":
        return work.complete({ text: "你好", plain: true });
      case "later":
        return work.working({ text: "在想" });
      case "report":
        return report(work);
      default:
        return work.complete({ text: `回：${work.text}` });
    }
  };
}

async function report(work: TaskWork): Promise<void> {
  await work.working({ text: "开始写" });
  const artifact = (text: string): object => ({ artifactId: "a-1", name: "报告.md", parts: [{ text }] });
  await work.artifact(artifact("第一段"), { last_chunk: false });
  await work.artifact(artifact("第二段"), { append: true, last_chunk: false });
  await work.artifact(artifact("第三段"), { append: true, last_chunk: true });
  await work.complete({ text: "写好了", artifacts: [{ artifactId: "a-2", parts: [{ data: { 字数: 9 } }] }] });
}

/** What an event says, in short. */
function shortly(event: EventJson): string {
  const { task, message, statusUpdate, artifactUpdate } = event;
  if (task !== undefined) return `task ${task.status.state}`;
  if (message !== undefined) return `message ${textOf(message)}`;
  if (statusUpdate !== undefined) {
    const { status } = statusUpdate;
    return `status ${status.state} ${status.message === undefined ? "" : textOf(status.message)}`.trim();
  }
  const { artifact, append = false, lastChunk = false } = artifactUpdate ?? assert.fail("an empty event");
  return `artifact ${artifact.artifactId} ${append ? "+" : "="}${lastChunk ? "." : ""}`;
}

function textOf({ parts }: { readonly parts: readonly Readonly<Record<string, unknown>>[] }): string {
  return parts.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("|");
}

async function refused(promise: Promise<unknown>, name: RegExp): Promise<void> {
  await assert.rejects(promise, (reason: Error) => {
    assert.match(`${reason.name}: ${reason.message}`, name);
    return true;
  });
}

for (const kind of SDK_CLIENTS) {
  describe(`the official client over ${kind.name}`, { timeout: 30_000 }, () => {
    let relay: A2aRelay;
    let agent: MailboxAgent;
    let client: SdkClient;
    before(async () => {
      relay = await A2aRelay.open();
      agent = await MailboxAgent.start(relay, ZHIWEI, scriptedWork());
      await relay.register(AWAY);
      client = await SdkClient.open(relay, ZHIWEI, kind);
    });
    after(async () => {
      await agent[Symbol.asyncDispose]();
      await relay[Symbol.asyncDispose]();
    });

    // The SDK's reader of 0.3 over REST forgets `append`; that it is on the wire is pinned in the golden files.
    const isForgetful = kind.binding === "HTTP+JSON" && kind.version === "0.3";
    const chunks = (isForgetful ? ["=", "=", "=."] : ["=", "+", "+."]).map((how) => `artifact a-1 ${how}`);
    chunks.push("artifact a-2 =.");

    const send = async (text: string, more: object = {}, configuration?: object) => {
      const said = userMessage(text, more);
      const { task } = await client.send(configuration === undefined ? said : { ...said, configuration });
      assert.ok(task, "expected a task");
      return task;
    };

    it("sends and is kept waiting until the task is done", async () => {
      const task = await send("hello 世界");
      assert.equal(task.status.state, "TASK_STATE_COMPLETED");
      assert.equal(textOf(task.status.message ?? assert.fail()), "回：hello 世界");
      assert.deepEqual(
        task.history?.map(({ role }) => role),
        ["ROLE_USER", "ROLE_AGENT"],
      );
      assert.equal(task.history?.[0]?.taskId, task.id);
    });

    it("sends and is answered at once if it wants that", async () => {
      const task = await send("later", {}, { returnImmediately: true });
      assert.equal(task.status.state, "TASK_STATE_SUBMITTED");
      assert.equal(textOf(task.history?.[0] ?? assert.fail()), "later");
    });

    it("is answered with a plain message where the agent gives one", async () => {
      const { message, task } = await client.send(userMessage("plain"));
      assert.equal(task, undefined);
      assert.equal(message?.role, "ROLE_AGENT");
      assert.equal(textOf(message), "你好");
      assert.ok(message.contextId);
    });

    it("streams: the task first, then each step, artifacts in chunks, and the end", async () => {
      const events = await collect(client.stream(userMessage("report 周报")));
      const steps = events.map(shortly);
      // How far the agent came before the stream began is not the same each time.
      const all = ["status TASK_STATE_WORKING 开始写", ...chunks, "status TASK_STATE_COMPLETED 写好了"];
      assert.match(steps[0] ?? "", /^task TASK_STATE_/);
      assert.deepEqual(steps.slice(1), all.slice(all.length - steps.length + 1));
      const id = events[0]?.task?.id ?? "";
      const done = await client.get(id);
      const [first, second] = done.artifacts ?? [];
      assert.equal(textOf(first ?? assert.fail()), "第一段|第二段|第三段");
      assert.deepEqual([first?.["name"], second?.parts[0]?.["data"]], ["报告.md", { 字数: 9 }]);
    });

    it("streams a task that was not begun yet with every step", async () => {
      const away = await SdkClient.open(relay, AWAY, kind);
      const events: string[] = [];
      let begun = Promise.resolve();
      for await (const event of away.stream(userMessage("report 月报"))) {
        events.push(shortly(event));
        if (events.length === 1) begun = MailboxAgent.next(relay, AWAY).then(report);
      }
      await begun;
      assert.deepEqual(events, [
        "task TASK_STATE_SUBMITTED",
        "status TASK_STATE_WORKING 开始写",
        ...chunks,
        "status TASK_STATE_COMPLETED 写好了",
      ]);
    });

    it("gets a task with all of its history, the last of it, or none", async () => {
      const { id } = await send("hello");
      const shown = async (length?: number) => (await client.get(id, length)).history?.map(textOf) ?? [];
      assert.deepEqual(await shown(), ["hello", "回：hello"]);
      assert.deepEqual(await shown(1), ["回：hello"]);
      assert.deepEqual(await shown(9), ["hello", "回：hello"]);
      assert.deepEqual(await shown(0), []);
    });

    it("is asked, answers in the same task, and is told the end", async () => {
      const asked = await send("ask 日期");
      assert.equal(asked.status.state, "TASK_STATE_INPUT_REQUIRED");
      assert.equal(textOf(asked.status.message ?? assert.fail()), "哪一天？");
      const done = await send("明天", { taskId: asked.id, contextId: asked.contextId });
      assert.deepEqual([done.id, done.status.state], [asked.id, "TASK_STATE_COMPLETED"]);
      assert.deepEqual(done.history?.map(textOf), ["ask 日期", "哪一天？", "明天", "收到：明天"]);
    });

    it("answers with the task id alone; the context is known from it", async () => {
      const asked = await send("auth 登录");
      assert.equal(asked.status.state, "TASK_STATE_AUTH_REQUIRED");
      assert.deepEqual(asked.status.message?.parts[1]?.["url"], "https://login.example/");
      const events = await collect(client.stream(userMessage("好了", { taskId: asked.id })));
      const last = events.at(-1)?.statusUpdate ?? events.at(-1)?.task;
      assert.equal(last?.status.state, "TASK_STATE_COMPLETED");
      assert.equal(last.contextId, asked.contextId);
    });

    it("ends its stream at a question, and subscribes to see what comes after it", async () => {
      const events = await collect(client.stream(userMessage("ask 地点")));
      const last = events.at(-1)?.statusUpdate ?? events.at(-1)?.task;
      assert.equal(last?.status.state, "TASK_STATE_INPUT_REQUIRED");
      const id = events[0]?.task?.id ?? "";
      const seen: string[] = [];
      for await (const event of client.subscribe(id)) {
        seen.push(shortly(event));
        if (seen.length === 1) await client.send({ ...userMessage("北京", { taskId: id }) });
      }
      assert.deepEqual(seen, [
        "task TASK_STATE_INPUT_REQUIRED",
        "status TASK_STATE_WORKING",
        "status TASK_STATE_COMPLETED 收到：北京",
      ]);
    });

    it("is told that a task was rejected, or failed, and why", async () => {
      const rejected = await send("reject");
      assert.equal(rejected.status.state, "TASK_STATE_REJECTED");
      assert.equal(textOf(rejected.status.message ?? assert.fail()), "不做这个");
      const failed = await send("fail");
      assert.equal(failed.status.state, "TASK_STATE_FAILED");
      assert.equal(textOf(failed.status.message ?? assert.fail()), "磁盘满了");
    });

    it("cancels, also twice, but not what is done", async () => {
      const away = await SdkClient.open(relay, AWAY, kind);
      const sent = await away.send({ ...userMessage("有空吗"), configuration: { returnImmediately: true } });
      const id = sent.task?.id ?? "";
      assert.equal((await away.cancel(id)).status.state, "TASK_STATE_CANCELED");
      assert.equal((await away.cancel(id)).status.state, "TASK_STATE_CANCELED");
      const done = await send("hello");
      await refused(client.cancel(done.id), /TaskNotCancelable/);
    });

    it("keeps the context that it names, also for the next task", async () => {
      const contextId = `会话-${kind.binding}-${kind.version}`;
      const first = await send("hello", { contextId });
      const second = await send("hello", { contextId });
      assert.deepEqual([first.contextId, second.contextId], [contextId, contextId]);
      assert.notEqual(first.id, second.id);
    });

    it("is refused what cannot be", async () => {
      const { id, contextId } = await send("hello");
      await refused(client.get("no-such-task"), /TaskNotFound/);
      await refused(client.cancel("no-such-task"), /TaskNotFound/);
      await refused(collect(client.subscribe("no-such-task")), /TaskNotFound/);
      await refused(send("x", { taskId: "no-such-task" }), /TaskNotFound/);
      await refused(send("too late", { taskId: id }), /UnsupportedOperation/);
      await refused(collect(client.subscribe(id)), /UnsupportedOperation/);
      const asked = await send("ask");
      await refused(send("x", { taskId: asked.id, contextId }), /contextId: task .* belongs to context/);
    });

    it("makes, gets, lists and deletes its push configurations", async () => {
      const away = await SdkClient.open(relay, AWAY, kind);
      const sent = await away.send({ ...userMessage("推给我"), configuration: { returnImmediately: true } });
      const taskId = sent.task?.id ?? "";
      const authentication = { scheme: "Bearer", credentials: "secret" };
      const wish = { taskId, id: "p-1", url: "https://hooks.example/a", token: "word", authentication };
      const made = await away.createPush(wish);
      assert.deepEqual([made.taskId, made.id, made.url, made.token], [taskId, "p-1", wish.url, "word"]);
      assert.deepEqual(made.authentication, authentication);
      assert.deepEqual(await away.getPush(taskId, "p-1"), made);
      await away.createPush({ ...wish, id: "p-2", url: "https://hooks.example/b" });
      assert.deepEqual(
        (await away.listPushes(taskId)).map(({ id }) => id),
        ["p-1", "p-2"],
      );
      await away.deletePush(taskId, "p-1");
      await away.deletePush(taskId, "p-1");
      assert.equal((await away.listPushes(taskId)).length, 1);
      await refused(away.getPush(taskId, "p-1"), /TaskNotFound/);
      await refused(away.createPush({ ...wish, taskId: "no-such-task" }), /TaskNotFound/);
      await refused(away.createPush({ ...wish, url: "http://127.0.0.1/inside" }), /url|127\.0\.0\.1/);
    });

    it("finds no task of one agent at another", async () => {
      const { id } = await send("hello");
      const other = await SdkClient.open(relay, AWAY, kind);
      await refused(other.get(id), /TaskNotFound/);
    });
  });
}

for (const kind of SDK_CLIENTS.filter(({ version }) => version === "1.0")) {
  describe(`lists of tasks over ${kind.name}`, () => {
    it("come page by page to the end, the newest change first, and only as asked", async () => {
      await using relay = await A2aRelay.open();
      await relay.register(AWAY);
      await relay.register(ZHIWEI);
      const client = await SdkClient.open(relay, AWAY, kind);
      const ids: string[] = [];
      for (let index = 0; index < 7; index += 1) {
        const more = { contextId: index < 3 ? "c-早" : "c-晚" };
        const { task } = await client.send({
          ...userMessage(`第${index}`, more),
          configuration: { returnImmediately: true },
        });
        ids.unshift(task?.id ?? "");
      }
      await (
        await SdkClient.open(relay, ZHIWEI, kind)
      ).send({
        ...userMessage("别处"),
        configuration: { returnImmediately: true },
      });

      const paged: string[][] = [];
      for (let pageToken = ""; ;) {
        const page = await client.list({ pageSize: 3, pageToken });
        assert.deepEqual([page.pageSize, page.totalSize], [3, 7]);
        paged.push(page.tasks.map(({ id }) => id));
        pageToken = page.nextPageToken ?? "";
        if (pageToken === "") break;
      }
      assert.deepEqual(paged, [ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)]);

      const inContext = await client.list({ contextId: "c-早" });
      assert.deepEqual(
        inContext.tasks.map(({ id }) => id),
        ids.slice(4),
      );
      await client.cancel(ids[2] ?? "");
      const canceled = await client.list({ status: "TASK_STATE_CANCELED" });
      assert.deepEqual(
        canceled.tasks.map(({ id }) => id),
        [ids[2]],
      );
      assert.equal((await client.list({})).tasks[0]?.id, ids[2], "what changed last comes first");
      const since = canceled.tasks[0]?.status.timestamp;
      assert.deepEqual(
        (await client.list({ statusTimestampAfter: since })).tasks.map(({ id }) => id),
        [ids[2]],
      );
    });

    it("show history and artifacts only when they are asked for", async () => {
      await using relay = await A2aRelay.open();
      await using _ = await MailboxAgent.start(relay, ZHIWEI, scriptedWork());
      const client = await SdkClient.open(relay, ZHIWEI, kind);
      await client.send(userMessage("report"));
      const [bare] = (await client.list({})).tasks;
      assert.deepEqual([bare?.history ?? [], bare?.artifacts ?? []], [[], []]);
      const [full] = (await client.list({ includeArtifacts: true, historyLength: 2 })).tasks;
      assert.deepEqual(full?.history?.map(textOf), ["开始写", "写好了"]);
      assert.deepEqual(
        full?.artifacts?.map(({ artifactId }) => artifactId),
        ["a-1", "a-2"],
      );
      await refused(client.list({ pageToken: "of-another-list" }), /pageToken/);
      await refused(client.list({ pageSize: 101 }), /pageSize/);
    });
  });
}
