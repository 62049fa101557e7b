import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../testing/cli-relay.ts";
import { ask, reaches, REAL, recordingScene, waitFor } from "../../testing/recording-scene.ts";
import { loadCassette } from "./cassette-parser.ts";
import { playCassette } from "./scripted-agent.ts";

describe("a recording agent", () => {
  it("answers with what the real agent says and writes it down so that people can read it", async () => {
    const statusSeen = Promise.withResolvers<void>();
    await using scene = await recordingScene(async (task) => {
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
    await using scene = await recordingScene((task) => {
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
    await using scene = await recordingScene(async () => {
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

  it("adds to an existing cassette, keeps its comments, and leaves no other file behind", async () => {
    await using scene = await recordingScene(() => "新的");
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

  it("refuses a file that is no cassette before it takes any message", async () => {
    await using scene = await recordingScene(() => "x");
    await writeFile(scene.path, "hello: world\n");
    await assert.rejects(scene.record(), /知微\.yaml:1: hello: unknown/);
    assert.equal(await scene.text(), "hello: world\n");
  });

  it("writes no secret it was told of, and no lease, task or message id", async () => {
    await using scene = await recordingScene(() => "密码是 hunter2", {
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
    await using scene = await recordingScene(async (task) => {
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
    await using scene = await recordingScene(() => "x");
    await using _ = await scene.record();
    const { receipt } = await scene.relay.client.send({ from: LULU, to: ZHIWEI, body: "下雨了" });
    const threads = (): ReturnType<typeof scene.relay.client.threads> =>
      scene.relay.client.threads({ agent: REAL });
    await waitFor(async () => (await threads()).threads.length > 0);
    const [thread] = (await threads()).threads;
    assert.deepEqual(thread?.participants.toSorted(), [REAL, ZHIWEI].toSorted());
    assert.equal((await scene.relay.client.message(receipt.message_id)).message.body, "下雨了");
  });
});
