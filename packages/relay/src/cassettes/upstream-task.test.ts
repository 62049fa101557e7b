import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { type A2aStreamEvent, type Fetch, type TaskHandler, textOf } from "@a2a-relay/client";
import { textOfParts } from "@a2a-relay/protocol";
import { type CliRelay, LULU, ZHIWEI } from "../../testing/cli-relay.ts";
import { ask, reaches, REAL, recordingScene, waitFor } from "../../testing/recording-scene.ts";
import { loadCassette } from "./cassette-parser.ts";
import { playCassette } from "./scripted-agent.ts";

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
    const said = message?.parts.map((part) => JSON.stringify(part)).join() ?? "";
    return `${task === undefined ? "" : "task "}${state.replace("TASK_STATE_", "")} ${said}`.trim();
  }
  const { artifact, append = false, lastChunk = false } = artifactUpdate;
  const flags = [append ? "append" : "put", ...(lastChunk ? ["last"] : [])].join(" ");
  const name = artifact["name"] === undefined ? "" : ` ${JSON.stringify(artifact["name"])}`;
  return `${flags}${name}: ${textOfParts(artifact.parts)}`;
}

/** Every kind of report about a task. */
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
    await task.addArtifact({ artifactId: "图", parts: [{ text: "星" }] }, { append: true });
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
  'put "诗": 床前',
  'WORKING {"text":"三"}',
  "append: 明月光",
  'put last "图": 月',
  "append: 星",
  "append: 疑是",
  "append last: 地上霜",
  'INPUT_REQUIRED {"text":"还要"},{"text":"吗?"}',
  // The answer, and what came of it.
  "task WORKING",
  "put: 改过的月",
  'WORKING {"text":"四"}',
  'FAILED {"text":"没纸了"},{"data":{"纸":0}}',
];

/** A relay that is away at first, and hangs up behind each event. */
function hangsUp(away: number): Fetch {
  let left = away;
  return async (url, init) => {
    const isFollowing = typeof init.body === "string" && init.body.includes("SubscribeToTask");
    if (isFollowing && left > 0) {
      left -= 1;
      throw new TypeError("connection refused");
    }
    const response = await fetch(url, init);
    if (!isFollowing || response.body === null) return response;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        controller.enqueue(chunk);
        if (Buffer.from(chunk).includes("data:")) controller.terminate();
      },
    });
    return new Response(response.body.pipeThrough(cut), response);
  };
}

describe("the task of the real agent", () => {
  it("is passed on and recorded step by step, as it was told and in its order", async () => {
    await using scene = await recordingScene(tellsAll);
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
          id: recorded-2
          append: true
          text: 星
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

  it("is read once and completely across outages of the relay and broken connections", async () => {
    await using scene = await recordingScene(tellsAll, {
      fetch: hangsUp(8),
      retryDelayMs: 1,
      retryDelayMsMax: 5,
    });
    await using _ = await scene.record();
    assert.deepEqual(await watched(scene.relay, ZHIWEI, "背诗", "要"), ALL_TOLD);
  });

  it("is a plain message where the real agent answered with one", async () => {
    await using scene = await recordingScene((task) => {
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

  it("has the time between the pieces of an artifact", async () => {
    await using scene = await recordingScene(async (task) => {
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

  it("is recorded whole by one that was started behind a question, and passed on from there", async () => {
    await using scene = await recordingScene(tellsAll);
    const { relay } = scene;
    const first = await scene.record();
    const client = relay.client.a2a(ZHIWEI);
    const { task } = await client.sendMessage("背诗");
    assert.equal(task?.status.state, "TASK_STATE_INPUT_REQUIRED");
    await first.stop();
    await using _ = await scene.record();
    const lines: string[] = [];
    for await (const event of client.streamMessage("要", { taskId: task.id })) lines.push(lineOf(event));
    assert.deepEqual(lines, ALL_TOLD.slice(12));
    const texts = (await client.getTask(task.id)).artifacts?.map(({ parts }) => textOfParts(parts));
    assert.deepEqual(texts, ["床前\n明月光\n疑是\n地上霜", "改过的月"]);
    const [exchange] = (await loadCassette(scene.path)).exchanges;
    assert.equal(exchange?.steps.length, 13);
  });

  it("has no piece of an artifact twice when a turn is begun again", async () => {
    const mayEnd = Promise.withResolvers<void>();
    await using scene = await recordingScene(async (task) => {
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

  it("is not lost where the real agent asks and then does not wait for the answer", async () => {
    const isSeen = Promise.withResolvers<void>();
    await using scene = await recordingScene(async (task) => {
      await task.report("auth-required", "请登录");
      await Promise.race([isSeen.promise, once(task.signal, "abort")]);
      await task.working("登录了");
      return "好";
    });
    const { client } = scene.relay;
    await using _ = await scene.record();
    const taskId = await ask(scene.relay, "查账");
    await reaches(scene.relay, taskId, "auth-required");
    isSeen.resolve();
    const isDone = async (): Promise<boolean> => {
      const { tasks } = await client.tasks({ agent: REAL, state: "completed" });
      return tasks.length === 1;
    };
    await waitFor(isDone);
    await client.send({ from: LULU, to: ZHIWEI, type: "reply", task_id: taskId, body: "登录了吗?" });
    assert.equal((await reaches(scene.relay, taskId, "completed")).status_text, "好");
    const [exchange] = (await loadCassette(scene.path)).exchanges;
    assert.deepEqual(
      exchange?.steps.map(({ act }) => act),
      ["auth", "status", "reply"],
    );
  });
});
