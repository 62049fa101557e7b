import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part } from "@a2a-relay/protocol";
import { parseCassette, playCassette } from "a2a-relay";
import { A2aRelay } from "../support/a2a-relay.ts";
import { collect, type EventJson, SDK_CLIENTS, SdkClient, userMessage } from "../support/sdk-client.ts";

const ZHIWEI = "zhiwei@studio";

const CASSETTE = `
version: 1
agent: ${ZHIWEI}
exchanges:
  - match: { text: 写报告 }
    reply:
      - status: 正在写
      - artifact: { id: 报告, name: 报告, chunks: [第一段, { delay_ms: 5 }, 第二段], last_chunk: false }
      - status: 快好了
      - artifact: { id: 报告, append: true, text: 第三段, last_chunk: true }
      - ask: 要英文的吗?
      - status: 在译
      - reply: { text: 好了, data: { 页: 3 } }
  - match: { text: 你好 }
    reply: [{ message: 你好，我是知微 }]
  - match: { text: 付钱 }
    reply: [{ auth: 先登录 }, { reject: 我不管钱 }]
`;

/** What the caller is told, one line for each event. */
function lineOf({ task, statusUpdate, artifactUpdate }: EventJson): string {
  if (artifactUpdate !== undefined) {
    const { artifact, append = false, lastChunk = false } = artifactUpdate;
    return `${append ? "+" : "="} ${wordsOf(artifact.parts)}${lastChunk ? "." : ""}`;
  }
  const { state = "", message } = (task ?? statusUpdate)?.status ?? {};
  return `${state.replace("TASK_STATE_", "")} ${wordsOf(message?.parts ?? [])}`.trim();
}

function wordsOf(parts: readonly Part[]): string {
  return parts.map(({ text, data }) => (typeof text === "string" ? text : JSON.stringify(data))).join();
}

for (const kind of SDK_CLIENTS) {
  describe(`a scripted agent, asked by the official client over ${kind.name}`, { timeout: 30_000 }, () => {
    it("tells how far it is, sends pieces, asks, and goes on with the answer", async () => {
      await using relay = await A2aRelay.open();
      await using _ = await playCassette({ url: relay.url }, await parseCassette(CASSETTE, "talk.yaml"));
      const client = await SdkClient.open(relay, ZHIWEI, kind);
      // The SDK's reader of 0.3 over REST forgets `append`; that it is on the wire is pinned in the golden files.
      const adding = kind.name === "REST 0.3" ? "=" : "+";
      const asked = await collect(client.stream(userMessage("写报告")));
      assert.deepEqual(asked.map(lineOf), [
        "SUBMITTED",
        "WORKING 正在写",
        "= 第一段",
        `${adding} 第二段`,
        "WORKING 快好了",
        `${adding} 第三段.`,
        "INPUT_REQUIRED 要英文的吗?",
      ]);
      const { id: taskId = "", contextId = "" } = asked[0]?.task ?? {};
      const answered = await collect(client.stream(userMessage("要", { taskId, contextId })));
      assert.deepEqual(answered.slice(1).map(lineOf), ["WORKING 在译", 'COMPLETED {"页":3}']);
      const { artifacts = [] } = await client.get(taskId);
      assert.deepEqual(
        artifacts.map(({ parts }) => parts.map((part) => part["text"])),
        [["第一段", "第二段", "第三段"]],
      );
    });

    it("answers with a plain message, asks for authorisation, and declines", async () => {
      await using relay = await A2aRelay.open();
      await using _ = await playCassette({ url: relay.url }, await parseCassette(CASSETTE, "talk.yaml"));
      const client = await SdkClient.open(relay, ZHIWEI, kind);
      const { message, task: none } = await client.send(userMessage("你好"));
      assert.equal(none, undefined);
      assert.deepEqual(
        message?.parts.map((part) => part["text"]),
        ["你好，我是知微"],
      );
      const { task } = await client.send(userMessage("付钱"));
      assert.equal(lineOf({ ...(task && { task }) }), "AUTH_REQUIRED 先登录");
      const { id: taskId = "", contextId = "" } = task ?? {};
      const { task: declined } = await client.send(userMessage("登录了", { taskId, contextId }));
      assert.equal(lineOf({ ...(declined && { task: declined }) }), "REJECTED 我不管钱");
    });
  });
}
