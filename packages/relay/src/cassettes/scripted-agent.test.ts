import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import type { TaskView } from "@a2a-relay/protocol";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../testing/cli-relay.ts";
import { openHttpRelay } from "../../testing/http-relay.ts";
import { parseCassette } from "./cassette-parser.ts";
import {
  type Played,
  playCassette,
  type ScriptedAgent,
  type ScriptedAgentOptions,
} from "./scripted-agent.ts";

const POLL_MS_MAX = 10_000;

/** Runs zhiwei from the script on a new relay. Delays pass at once unless the test wants them. */
async function setup(script: string, options: Partial<ScriptedAgentOptions> = {}) {
  await using stack = new AsyncDisposableStack();
  const relay = stack.use(await openCliRelay());
  const played: Played[] = [];
  const play = async (more: Partial<ScriptedAgentOptions> = {}): Promise<ScriptedAgent> =>
    playCassette(
      {
        url: relay.url,
        id: ZHIWEI,
        onError: () => undefined,
        onPlayed: (each) => played.push(each),
        ...options,
        ...more,
      },
      await parseCassette(`version: 1\n${script}`, "talk.yaml"),
    );
  const agent = stack.use(await play());
  const owned = stack.move();
  return { relay, agent, play, played, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function ask(relay: CliRelay, body: string, more: object = {}): Promise<string> {
  const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, type: "request", body, ...more });
  return receipt.task_id ?? "";
}

async function reaches(relay: CliRelay, taskId: string, state: TaskView["state"]): Promise<TaskView> {
  return until(
    () => relay.client.task(taskId),
    (task) => task.state === state,
  );
}

async function until<Value>(read: () => Promise<Value>, holds: (value: Value) => boolean): Promise<Value> {
  const endMs = performance.now() + POLL_MS_MAX;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    assert.ok(performance.now() < endMs, `it never came; at last: ${JSON.stringify(value)}`);
  }
}

async function inboxOfLulu(relay: CliRelay): Promise<readonly string[]> {
  const { messages } = await relay.client.readMailbox(LULU, { peek: true });
  return messages.map(({ message }) => message.body);
}

describe("a scripted agent", () => {
  it("answers with the text, the parts and the artifacts of the exchange that matches", async () => {
    await using talk = await setup(`
exchanges:
  - match: { text: 知微你好 }
    reply:
      - status: 想一想
      - artifact: { name: 报告, chunks: [第一段, 第二段, { data: { 页: 3 } }] }
      - reply: { text: '你好,露露', data: { mood: 好 }, partial: true }
  - match: { text: hello }
    reply: [{ reply: hi }]
`);
    const task = await reaches(talk.relay, await ask(talk.relay, "知微你好"), "completed");
    assert.equal(task.result_status, "partial");
    assert.deepEqual(task.artifacts, [
      {
        artifactId: "artifact-2",
        name: "报告",
        parts: [
          { kind: "text", text: "第一段" },
          { kind: "text", text: "第二段" },
          { kind: "data", data: { 页: 3 } },
        ],
      },
    ]);
    const { message } = await talk.relay.client.message(task.result_message_id ?? "");
    assert.equal(message.body, "你好,露露");
    assert.deepEqual(message.parts, [{ kind: "data", data: { mood: "好" } }]);
    const { receipts } = await talk.relay.client.message(task.message_id);
    assert.deepEqual(
      receipts.map(({ stage }) => stage),
      ["accepted", "leased", "working", "acknowledged", "replied"],
    );
    assert.deepEqual(
      talk.played.map(({ outcome, exchange }) => [outcome, exchange?.line]),
      [["replied", 4]],
    );
  });

  it("fails and rejects with the reason, and fails what nothing matches", async () => {
    await using talk = await setup(`
exchanges:
  - match: { contains: 钱 }
    reply: [{ reject: 我不管钱 }]
  - match: { regex: '^[0-9]+ / 0$' }
    reply: [{ fail: 不能除以零 }]
`);
    assert.equal(
      (await reaches(talk.relay, await ask(talk.relay, "付钱"), "rejected")).status_text,
      "我不管钱",
    );
    assert.equal(
      (await reaches(talk.relay, await ask(talk.relay, "7 / 0"), "failed")).status_text,
      "不能除以零",
    );
    const other = await reaches(talk.relay, await ask(talk.relay, "天气?"), "failed");
    assert.equal(other.status_text, "the cassette has no answer to this");
    assert.deepEqual(
      talk.played.map(({ exchange }) => exchange?.line),
      [4, 6, undefined],
    );
  });

  it("waits as long as the script says, by the clock it was given", async () => {
    const asked: number[] = [];
    await using talk = await setup(`exchanges: [{ reply: [{ delay_ms: 86400000 }, { reply: 终于 }] }]`, {
      pause: async (durationMs) => void asked.push(durationMs),
    });
    await reaches(talk.relay, await ask(talk.relay, "x"), "completed");
    assert.deepEqual(asked, [86_400_000]);
  });

  it("answers an A2A caller with a plain message where the script says so", async () => {
    await using talk = await setup("exchanges: [{ reply: [{ message: 就这样 }] }]");
    const { task, message } = await talk.relay.client.a2a(ZHIWEI).sendMessage("怎么样?");
    assert.equal(task, undefined);
    assert.deepEqual(message?.parts, [{ text: "就这样" }]);
  });

  it("asks, for input and for authorisation, and goes on with what comes back", async () => {
    await using talk = await setup(`
exchanges:
  - reply:
      - ask: 哪种语言?
      - status: 翻译中
      - auth: 请登录
      - reply: 好了
`);
    const { relay } = talk;
    const taskId = await ask(relay, "翻译");
    await reaches(relay, taskId, "input-required");
    await relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "中文" });
    const waiting = await reaches(relay, taskId, "auth-required");
    assert.equal(waiting.status_text, "请登录");
    await relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "登录了" });
    await reaches(relay, taskId, "completed");
    assert.deepEqual(await inboxOfLulu(relay), ["哪种语言?", "请登录", "好了"]);
    assert.deepEqual(
      talk.played.map(({ outcome }) => outcome),
      ["asked", "asked for authorization", "replied"],
    );
  });

  it("knows behind which question it is after it was started anew", async () => {
    await using talk = await setup(`exchanges: [{ reply: [{ ask: 一? }, { ask: 二? }, { reply: 三 }] }]`);
    const { relay } = talk;
    const taskId = await ask(relay, "开始");
    await until(
      () => inboxOfLulu(relay),
      (messages) => messages.length === 1,
    );
    await reaches(relay, taskId, "input-required");
    await relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "1" });
    await until(
      () => inboxOfLulu(relay),
      (messages) => messages.length === 2,
    );
    await talk.agent.stop();
    await using _ = await talk.play();
    await relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "2" });
    await reaches(relay, taskId, "completed");
    assert.deepEqual(await inboxOfLulu(relay), ["一?", "二?", "三"]);
  });

  it("takes what was added before its question for the answer", async () => {
    const added = Promise.withResolvers<void>();
    await using talk = await setup(
      "exchanges: [{ reply: [{ delay_ms: 1 }, { ask: 还有吗? }, { reply: 够了 }] }]",
      {
        pause: () => added.promise,
      },
    );
    const { relay } = talk;
    const taskId = await ask(relay, "开始");
    const { receipt } = await relay.client.send({
      from: LULU,
      to: ZHIWEI,
      task_id: taskId,
      body: "还有这个",
    });
    await until(
      async () => (await relay.client.message(receipt.message_id)).delivery?.state,
      (state) => state === "leased",
    );
    added.resolve();
    await reaches(relay, taskId, "completed");
    assert.deepEqual(await inboxOfLulu(relay), ["还有吗?", "够了"]);
  });

  it("answers a message that is no task only where its kind is named, once, and in its thread", async () => {
    await using talk = await setup(`
exchanges:
  - match: { kind: note, contains: 雨 }
    reply: [{ reply: 带伞 }]
  - match: { kind: [alert, memory] }
    reply: [{ fail: 不收 }]
  - reply: [{ reply: 任务 }]
`);
    const { relay } = talk;
    const note = { from: LULU, to: ZHIWEI, type: "note" } as const;
    const { receipt: rain } = await relay.client.send({ ...note, body: "下雨了" });
    const { receipt: sun } = await relay.client.send({ ...note, body: "晴天" });
    const { receipt: alert } = await relay.client.send({ ...note, type: "alert", body: "着火了" });
    const settled = (id: string): Promise<string> =>
      until(
        async () => (await relay.client.message(id)).delivery?.state ?? "",
        (state) => state !== "available" && state !== "leased",
      );
    assert.equal(await settled(rain.message_id), "acknowledged");
    assert.equal(await settled(sun.message_id), "acknowledged");
    assert.equal(await settled(alert.message_id), "dead");
    const { messages } = await relay.client.readMailbox(LULU, { peek: true });
    const answers = messages.filter(({ message }) => message.from === ZHIWEI).map(({ message }) => message);
    assert.deepEqual(
      answers.map(({ body, reply_to, thread_id }) => [body, reply_to, thread_id]),
      [["带伞", rain.message_id, rain.thread_id]],
    );
  });

  it("stays silent, answers others meanwhile, and gives the message back when it is stopped", async () => {
    await using talk = await setup(`
otherwise: ignore
exchanges: [{ match: { text: hello }, reply: [{ reply: hi }] }]
`);
    const { relay } = talk;
    const silent = await ask(relay, "没人理我");
    await reaches(relay, await ask(relay, "hello"), "completed");
    const { message_id: id } = await relay.client.task(silent);
    await until(
      async () => (await relay.client.health(), talk.played.map(({ outcome }) => outcome)),
      (outcomes) => outcomes.includes("silent"),
    );
    assert.equal((await relay.client.message(id)).delivery?.state, "leased");
    await talk.agent.stop();
    assert.equal((await relay.client.message(id)).delivery?.state, "available");
    assert.equal((await relay.client.task(silent)).state, "submitted");
  });

  it("gives back what it was about to answer when it is stopped, and the next one answers it", async () => {
    await using talk = await setup(
      `exchanges: [{ reply: [{ status: 快了 }, { delay_ms: 60000 }, { reply: 好 }] }]`,
    );
    const { relay } = talk;
    const taskId = await ask(relay, "慢慢来");
    await reaches(relay, taskId, "working");
    await talk.agent.stop();
    await using _ = await talk.play({ pause: async () => undefined });
    await reaches(relay, taskId, "completed");
    assert.deepEqual(await inboxOfLulu(relay), ["好"]);
  });

  it("crashes without a report, and its successor answers once, with each artifact once", async () => {
    await using talk = await setup(`
exchanges:
  - reply:
      - artifact: { id: 诗, chunks: [床前, 明月光] }
      - crash: 1
      - reply: 低头思故乡
`);
    const { relay } = talk;
    const taskId = await ask(relay, "背诗");
    await assert.rejects(talk.agent.ended, /crashed the agent at talk\.yaml:4/);
    const { message_id: id } = await relay.client.task(taskId);
    assert.equal((await relay.client.message(id)).delivery?.state, "leased");
    await using _ = await talk.play();
    const task = await reaches(relay, taskId, "completed");
    assert.deepEqual(
      task.artifacts.map(({ parts }) => parts.map((part) => part["text"])),
      [["床前", "明月光"]],
    );
    assert.deepEqual(await inboxOfLulu(relay), ["低头思故乡"]);
  });

  it("gives nothing back when it crashes, not even what it was silent about", async () => {
    await using talk = await setup(`
otherwise: ignore
exchanges: [{ match: { text: 倒下 }, reply: [{ crash: true }] }]
`);
    const { relay } = talk;
    const silent = await ask(relay, "没人理我");
    await until(
      async () => (await relay.client.health(), talk.played.length),
      (count) => count === 1,
    );
    const crashing = await ask(relay, "倒下");
    await assert.rejects(talk.agent.ended, { code: "unavailable" });
    await talk.agent.stop();
    for (const taskId of [silent, crashing]) {
      const { message_id: id } = await relay.client.task(taskId);
      assert.equal((await relay.client.message(id)).delivery?.state, "leased");
    }
  });

  it("needs no more than the agent's own key, also for questions and after a crash", async () => {
    const operatorKey = "0123456789abcdef";
    const headers = { authorization: `Bearer ${operatorKey}` };
    await using relay = await openHttpRelay({ env: { A2A_RELAY_API_KEY: operatorKey }, headers });
    const operator = new RelayClient({ url: relay.url, apiKey: operatorKey });
    const { api_key: apiKey } = await operator.register({ agent_id: "mei@shanghai" });
    const script = `version: 1
agent: mei@shanghai
exchanges: [{ reply: [{ crash: 1 }, { auth: 请登录 }, { ask: 哪个? }, { reply: 好 }] }]
`;
    const cassette = await parseCassette(script, "talk.yaml");
    const options = { url: relay.url, apiKey, onError: () => undefined };
    const first = await playCassette(options, cassette);
    const message = { from: LULU, to: "mei@shanghai", body: "在吗?" };
    const { receipt } = await operator.send({ ...message, type: "request" });
    const { task_id: taskId = "" } = receipt;
    await assert.rejects(first.ended);
    await using _ = await playCassette(options, cassette);
    for (const state of ["auth-required", "input-required", "completed"] as const) {
      await until(
        () => operator.task(taskId),
        (task) => task.state === state,
      );
      if (state !== "completed") await operator.send({ ...message, type: "reply", task_id: taskId });
    }
  });

  it("leaves alone what another worker holds", async () => {
    await using talk = await setup(`exchanges: [{ reply: [{ reply: 我来 }] }]`);
    const { relay } = talk;
    await talk.agent.stop();
    const taskId = await ask(relay, "别抢");
    const { messages } = await relay.client.lease(ZHIWEI, { max: 1, lease_ms: 100, worker: "real" });
    await using _ = await talk.play();
    const other = await ask(relay, "这个归你");
    await reaches(relay, other, "completed");
    const { message_id: id } = await relay.client.task(taskId);
    assert.equal((await relay.client.message(id)).delivery?.lease?.id, messages[0]?.lease.id);
  });

  it("says when every exchange was played", async () => {
    await using talk = await setup(`
mode: ordered
exchanges:
  - match: { text: 一 }
    reply: [{ reply: '1' }]
  - match: { text: 二 }
    reply: [{ reply: '2' }]
`);
    const { relay } = talk;
    assert.equal((await reaches(relay, await ask(relay, "二"), "failed")).result_status, "error");
    await reaches(relay, await ask(relay, "一"), "completed");
    await reaches(relay, await ask(relay, "二"), "completed");
    await talk.agent.through;
  });

  it("counts an exchange whose task was canceled as played", async () => {
    await using talk = await setup(
      "exchanges: [{ reply: [{ status: 等 }, { delay_ms: 3600000 }, { reply: x }] }]",
    );
    const taskId = await ask(talk.relay, "算了");
    await reaches(talk.relay, taskId, "working");
    await talk.relay.client.cancelTask(taskId);
    await talk.agent.through;
    assert.deepEqual(talk.played, []);
  });

  it("fails a task whose message takes a pattern too long, and goes on", async () => {
    await using talk = await setup(`
exchanges:
  - match: { regex: '^(a+)+$' }
    reply: [{ reply: matched }]
`);
    const stuck = await reaches(talk.relay, await ask(talk.relay, `${"a".repeat(50)}b`), "failed");
    assert.match(stuck.status_text ?? "", /regex \^\(a\+\)\+\$ took over 250 ms/);
    await reaches(talk.relay, await ask(talk.relay, "aaa"), "completed");
  });
});
