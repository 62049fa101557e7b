import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type A2aStreamEvent, RelayAgent, type TaskHandler, textOf } from "@a2a-relay/client";
import { type TaskView, textOfParts } from "@a2a-relay/protocol";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../testing/cli-relay.ts";
import { loadCassette } from "./cassette-parser.ts";
import { RecordingAgent, type RecordingAgentOptions } from "./recording-agent.ts";
import { playCassette } from "./scripted-agent.ts";

const REAL = "zhiwei@cloud";
const LOOKS_MS_MAX = 10_000;

/** A relay with a real agent that nobody but the recorder asks, and a recorder where others ask. */
async function setup(handler: TaskHandler, options: Partial<RecordingAgentOptions> = {}) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "recording-"));
  stack.defer(() => rm(folder, { recursive: true }));
  const relay = stack.use(await openCliRelay());
  const real = new RelayAgent({ url: relay.url, id: REAL }).onTask(handler).onMessage(() => undefined);
  await real.start();
  stack.defer(() => real.stop());
  const path = join(folder, "知微.yaml");
  let nowMs = 0;
  const record = async (): Promise<RecordingAgent> => {
    const own = { url: relay.url, id: ZHIWEI, upstream: REAL, cassette: path };
    // Time stands still between steps unless a test says otherwise.
    const recorder = new RecordingAgent({ ...own, nowMs: () => nowMs, onError: () => undefined, ...options });
    await recorder.start();
    return recorder;
  };
  const owned = stack.move();
  return {
    relay,
    path,
    folder,
    record,
    pass: (ms: number) => void (nowMs += ms),
    text: () => readFile(path, "utf8"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function ask(relay: CliRelay, body: string): Promise<string> {
  const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, type: "request", body });
  return receipt.task_id ?? "";
}

async function reaches(relay: CliRelay, taskId: string, state: TaskView["state"]): Promise<TaskView> {
  const endMs = performance.now() + LOOKS_MS_MAX;
  for (;;) {
    const task = await relay.client.task(taskId);
    if (task.state === state) return task;
    assert.ok(performance.now() < endMs, `it is ${task.state}: ${task.status_text}`);
  }
}

async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + LOOKS_MS_MAX;
  while (!(await isSo())) assert.ok(performance.now() < endMs, "it never came to that");
}

/** All that an A2A caller of the agent sees, one line for each event, without ids and times. */
async function watched(relay: CliRelay, agentId: string, ...said: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  let taskId: string | undefined;
  for (const text of said) {
    for await (const event of relay.client.a2a(agentId).streamMessage(text, { taskId })) {
      taskId ??= event.task?.id;
      lines.push(lineOf(event));
    }
  }
  return lines;
}

function lineOf({ task, statusUpdate, artifactUpdate }: A2aStreamEvent): string {
  if (artifactUpdate === undefined) {
    const { state = "", message } = (statusUpdate ?? task)?.status ?? {};
    const said = message?.parts.map(({ kind: _, ...part }) => JSON.stringify(part)).join() ?? "";
    return `${task === undefined ? "" : "task "}${state.replace("TASK_STATE_", "")} ${said}`.trim();
  }
  const { artifact, append = false, lastChunk = false } = artifactUpdate;
  const flags = [append ? "append" : "put", ...(lastChunk ? ["last"] : [])].join(" ");
  return `${flags} ${String(artifact["name"] ?? "")}: ${textOfParts(artifact.parts)}`;
}

/** Whatever there is to be told of a task. */
const tellsAll: TaskHandler = async (task) => {
  if (!task.isFollowUp) {
    await task.working();
    await task.working("一");
    await task.working({ text: "二", parts: [{ data: { 成: 2 } }] });
    await task.addArtifact({ artifactId: "诗", name: "诗", parts: [{ text: "床前" }] }, { lastChunk: false });
    await task.working("三");
    const more = { artifactId: "诗", parts: [{ text: "明月光" }] };
    await task.addArtifact(more, { append: true });
    await task.addArtifact({ artifactId: "图", name: "图", parts: [{ text: "月" }] });
    await task.addArtifact({ ...more, parts: [{ text: "疑是" }] }, { append: true });
    await task.addArtifact({ ...more, parts: [{ text: "地上霜" }] }, { append: true, lastChunk: true });
    task.askInput({ text: "还要吗?", parts: [{ text: "还要" }, { text: "吗?" }] });
    return undefined;
  }
  await task.addArtifact({ artifactId: "图", parts: [{ text: "改过的月" }] }, { lastChunk: false });
  await task.working("四");
  task.fail({ text: "没纸了", parts: [{ text: "没纸了" }, { data: { 纸: 0 } }] });
  return undefined;
};

const ALL_TOLD = [
  "task SUBMITTED",
  "WORKING",
  'WORKING {"text":"一"}',
  'WORKING {"data":{"成":2}}',
  "put 诗: 床前",
  'WORKING {"text":"三"}',
  "append : 明月光",
  "put last 图: 月",
  "append : 疑是",
  "append last : 地上霜",
  'INPUT_REQUIRED {"text":"还要"},{"text":"吗?"}',
  // The answer, and what came of it.
  "task WORKING",
  "put : 改过的月",
  'WORKING {"text":"四"}',
  'FAILED {"text":"没纸了"},{"data":{"纸":0}}',
];

describe("a recording agent", () => {
  it("passes on, and records, every step as it was told, in its order", async () => {
    await using scene = await setup(tellsAll);
    const { relay } = scene;
    const talk = (agentId: string): Promise<string[]> => watched(relay, agentId, "背诗", "要");
    assert.deepEqual(await talk(REAL), ALL_TOLD);
    const recorder = await scene.record();
    assert.deepEqual(await talk(ZHIWEI), ALL_TOLD);
    await recorder.stop();
    await using _ = await playCassette({ url: relay.url }, await loadCassette(scene.path));
    assert.deepEqual(await talk(ZHIWEI), ALL_TOLD);
    assert.equal(
      (await scene.text()).replace(/^[^]*reply:/, ""),
      `
      - status: null
      - status: 一
      - status:
          parts:
            - data:
                成: 2
      - artifact:
          id: recorded-1
          name: 诗
          text: 床前
          last_chunk: false
      - status: 三
      - artifact:
          id: recorded-1
          append: true
          text: 明月光
      - artifact:
          id: recorded-2
          name: 图
          text: 月
      - artifact:
          id: recorded-1
          append: true
          chunks:
            - 疑是
            - 地上霜
          last_chunk: true
      - ask:
          text: |-
            还要
            吗?
          parts:
            - text: 还要
            - text: 吗?
      - artifact:
          id: recorded-2
          text: 改过的月
          last_chunk: false
      - status: 四
      - fail:
          text: 没纸了
          parts:
            - text: 没纸了
            - data:
                纸: 0
`,
    );
  });

  it("answers plainly what was answered plainly, and records it so", async () => {
    await using scene = await setup((task) => {
      if (task.text === "你好") task.answerPlainly("你好,露露");
      else task.answerPlainly({ parts: [{ text: "看" }, { data: { 图: 1 } }] });
      return undefined;
    });
    const { relay } = scene;
    const talk = async (): Promise<void> => {
      const plain = await relay.client.a2a(ZHIWEI).sendMessage("你好");
      assert.equal(plain.task, undefined);
      assert.equal(textOf(plain), "你好,露露");
      const { message } = await relay.client.a2a(ZHIWEI).sendMessage("看图");
      assert.deepEqual(message?.parts, [{ text: "看" }, { data: { 图: 1 } }]);
    };
    const recorder = await scene.record();
    await talk();
    await recorder.stop();
    assert.match(await scene.text(), /- message: 你好,露露\n[^]*- message:\n {10}text: 看\n {10}parts:/);
    await using _ = await playCassette({ url: relay.url }, await loadCassette(scene.path));
    await talk();
  });

  it("records the time between the pieces of an artifact", async () => {
    await using scene = await setup(async (task) => {
      const put = async (text: string, options: object): Promise<void> => {
        await task.addArtifact({ artifactId: "诗", parts: [{ text }] }, options);
        await waitFor(async () => (await heard()).includes(text));
      };
      const heard = async (): Promise<string> => {
        const { tasks } = await scene.relay.client.tasks({ agent: ZHIWEI });
        const own = tasks.find(({ assignee }) => assignee === ZHIWEI)?.id ?? "";
        return JSON.stringify((await scene.relay.client.task(own)).artifacts);
      };
      await put("床前", { lastChunk: false });
      scene.pass(400);
      await put("明月光", { append: true });
      scene.pass(1_000);
      await put("。", { append: true, lastChunk: true });
      return "好";
    });
    await using _ = await scene.record();
    await reaches(scene.relay, await ask(scene.relay, "背诗"), "completed");
    const [exchange] = (await loadCassette(scene.path)).exchanges;
    const text = (said: string): object => [{ kind: "text", text: said }];
    const chunks = [text("床前"), { durationMs: 400 }, text("明月光"), { durationMs: 1_000 }, text("。")];
    const artifact = { id: "artifact-1", name: undefined, description: undefined, append: false };
    assert.deepEqual(exchange?.steps[0], {
      act: "artifact",
      artifact: { ...artifact, chunks, lastChunk: true },
    });
    assert.equal(exchange?.steps.length, 2);
  });

  it("killed between question and answer, goes on with what is new, and records all of it", async () => {
    await using scene = await setup(tellsAll);
    const { relay } = scene;
    const first = await scene.record();
    const client = relay.client.a2a(ZHIWEI);
    const { task } = await client.sendMessage("背诗");
    assert.equal(task?.status.state, "TASK_STATE_INPUT_REQUIRED");
    await first.stop();
    await using _ = await scene.record();
    const lines: string[] = [];
    for await (const event of client.streamMessage("要", { taskId: task.id })) lines.push(lineOf(event));
    assert.deepEqual(lines, ALL_TOLD.slice(11));
    const texts = (await client.getTask(task.id)).artifacts?.map(({ parts }) => textOfParts(parts));
    assert.deepEqual(texts, ["床前\n明月光\n疑是\n地上霜", "改过的月"]);
    const [exchange] = (await loadCassette(scene.path)).exchanges;
    assert.equal(exchange?.steps.length, 12);
  });

  it("adds no piece of an artifact twice when it begins a turn again", async () => {
    const mayEnd = Promise.withResolvers<void>();
    await using scene = await setup(async (task) => {
      const id = { artifactId: "诗" };
      if (!task.isFollowUp) {
        await task.addArtifact({ ...id, parts: [{ text: "床前" }] });
        task.askInput("还要吗?");
        return undefined;
      }
      await task.addArtifact({ ...id, parts: [{ text: "明月光" }] }, { append: true });
      await Promise.race([mayEnd.promise, once(task.signal, "abort")]);
      await task.addArtifact({ ...id, parts: [{ text: "。" }] }, { append: true });
      return "好";
    });
    const { client } = scene.relay;
    const first = await scene.record();
    const taskId = await ask(scene.relay, "背诗");
    await reaches(scene.relay, taskId, "input-required");
    await client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "要" });
    await waitFor(async () => (await client.task(taskId)).artifacts[0]?.parts.length === 2);
    await first.stop();
    await using _ = await scene.record();
    mayEnd.resolve();
    const { artifacts } = await reaches(scene.relay, taskId, "completed");
    assert.equal(textOfParts(artifacts[0]?.parts ?? []), "床前\n明月光\n。");
  });

  it("answers with what the real agent says and writes it down so that people can read it", async () => {
    const statusSeen = Promise.withResolvers<void>();
    await using scene = await setup(async (task) => {
      if (task.text === "付钱") {
        task.reject("我不管钱");
        return undefined;
      }
      await task.working("想一想");
      await statusSeen.promise;
      scene.pass(1_234);
      await task.addArtifact({ name: "诗", parts: [{ kind: "text", text: "床前明月光" }] });
      return { text: "好了", parts: [{ kind: "data", data: { 行: 1 } }] };
    });
    await using _ = await scene.record();
    const taskId = await ask(scene.relay, "背诗");
    await reaches(scene.relay, taskId, "working");
    statusSeen.resolve();
    const task = await reaches(scene.relay, taskId, "completed");
    assert.equal(task.artifacts[0]?.["name"], "诗");
    assert.equal(
      (await reaches(scene.relay, await ask(scene.relay, "付钱"), "rejected")).status_text,
      "我不管钱",
    );
    assert.equal(
      await scene.text(),
      `version: 1
agent: ${ZHIWEI}
mode: loop
exchanges:
  - match:
      text: 背诗
    reply:
      - status: 想一想
      - delay_ms: 1230
      - artifact:
          name: 诗
          text: 床前明月光
      - reply:
          text: 好了
          parts:
            - kind: data
              data:
                行: 1
  - match:
      text: 付钱
    reply:
      - reject: 我不管钱
`,
    );
  });

  it("makes a cassette that is answered from as the real agent answered, questions included", async () => {
    await using scene = await setup((task) => {
      if (!task.isFollowUp) task.askInput("哪种语言?");
      return `译成${task.text}`;
    });
    const talk = async (): Promise<string | undefined> => {
      const taskId = await ask(scene.relay, "翻译");
      await reaches(scene.relay, taskId, "input-required");
      await scene.relay.client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "中文" });
      return (await reaches(scene.relay, taskId, "completed")).status_text;
    };
    const recorder = await scene.record();
    assert.equal(await talk(), "译成中文");
    await recorder.stop();
    await using _ = await playCassette({ url: scene.relay.url }, await loadCassette(scene.path));
    assert.equal(await talk(), "译成中文");
  });

  it("goes on with work that a recorder before it left, asks the real agent once, and records it", async () => {
    const mayAnswer = Promise.withResolvers<void>();
    const isAsked = Promise.withResolvers<void>();
    let asked = 0;
    await using scene = await setup(async () => {
      asked += 1;
      isAsked.resolve();
      await mayAnswer.promise;
      return "久等了";
    });
    const first = await scene.record();
    const taskId = await ask(scene.relay, "慢慢来");
    await isAsked.promise;
    await first.stop();
    await using _ = await scene.record();
    mayAnswer.resolve();
    assert.equal((await reaches(scene.relay, taskId, "completed")).status_text, "久等了");
    assert.equal(asked, 1);
    assert.equal((await loadCassette(scene.path)).exchanges.length, 1);
  });

  it("adds to a cassette that is there, keeps its comments, and leaves no other file behind", async () => {
    await using scene = await setup(() => "新的");
    await writeFile(scene.path, "version: 1 # 手写\nexchanges:\n  - reply: [{ reply: 旧的 }] # 别删\n");
    await using _ = await scene.record();
    const tasks = await Promise.all(["一", "二", "三"].map((body) => ask(scene.relay, body)));
    for (const taskId of tasks) await reaches(scene.relay, taskId, "completed");
    assert.match(
      await scene.text(),
      /^version: 1 # 手写\nexchanges:\n {2}- reply: \[ ?\{ reply: 旧的 \} ?\] # 别删\n/,
    );
    assert.equal((await loadCassette(scene.path)).exchanges.length, 4);
    assert.deepEqual(await readdir(scene.folder), ["知微.yaml"]);
  });

  it("refuses a file that is no cassette before it takes any mail", async () => {
    await using scene = await setup(() => "x");
    await writeFile(scene.path, "hello: world\n");
    await assert.rejects(scene.record(), /知微\.yaml:1: hello: unknown/);
    assert.equal(await scene.text(), "hello: world\n");
  });

  it("writes no secret it was told of, and no lease, task or message id", async () => {
    await using scene = await setup(() => "密码是 hunter2", {
      secrets: ["hunter2"],
    });
    await using _ = await scene.record();
    const taskId = await ask(scene.relay, "hunter2 是什么?");
    const task = await reaches(scene.relay, taskId, "completed");
    const text = await scene.text();
    assert.match(text, /\[secret\] 是什么/);
    for (const secret of ["hunter2", taskId, task.message_id, "lease"])
      assert.ok(!text.includes(secret), secret);
  });

  it("cancels the real agent's work with its own, and records nothing of it", async () => {
    const seen = Promise.withResolvers<AbortSignal>();
    await using scene = await setup(async (task) => {
      seen.resolve(task.signal);
      await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
      return "too late";
    });
    await using _ = await scene.record();
    const taskId = await ask(scene.relay, "算了");
    const signal = await seen.promise;
    await scene.relay.client.cancelTask(taskId);
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    assert.equal((signal.reason as { code?: string }).code, "task_canceled");
    await assert.rejects(scene.text(), { code: "ENOENT" });
  });

  it("passes notes on to the real agent", async () => {
    await using scene = await setup(() => "x");
    await using _ = await scene.record();
    const { receipt } = await scene.relay.client.send({ from: LULU, to: ZHIWEI, body: "下雨了" });
    const endMs = performance.now() + LOOKS_MS_MAX;
    let threads = await scene.relay.client.threads({ agent: REAL });
    while (threads.threads.length === 0 && performance.now() < endMs) {
      threads = await scene.relay.client.threads({ agent: REAL });
    }
    assert.deepEqual(threads.threads[0]?.participants.toSorted(), [REAL, ZHIWEI].toSorted());
    assert.equal((await scene.relay.client.message(receipt.message_id)).message.body, "下雨了");
  });
});
