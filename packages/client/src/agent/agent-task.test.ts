import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type AgentSetup, ASKER, gate, setupAgent, WORKER } from "../../testing/agent-setup.ts";
import { to } from "../../testing/faulty-relay.ts";
import type { WireRequest } from "../../testing/wire-server.ts";
import type { A2AClient } from "../a2a/a2a-client.ts";
import type { A2aStreamEvent } from "../a2a/stream-event.ts";
import type { AskedOverA2a } from "./task-content.ts";

/** A standard caller, past all faults. */
function callerOf({ direct }: AgentSetup): A2AClient {
  return direct.a2a(WORKER);
}

/** What the caller sees, without what differs each time. `onFirst` lets the handler begin when the caller is there. */
async function seen(events: AsyncIterable<A2aStreamEvent>, onFirst: () => void): Promise<readonly unknown[]> {
  const steps: unknown[] = [];
  for await (const { task, statusUpdate, artifactUpdate, message } of events) {
    onFirst();
    if (message !== undefined) steps.push({ message: message.parts });
    if (task !== undefined) steps.push(task.status.state);
    if (statusUpdate !== undefined) {
      const { status, metadata } = statusUpdate;
      steps.push([status.state, status.message?.parts, ...(metadata === undefined ? [] : [metadata])]);
    }
    if (artifactUpdate === undefined) continue;
    const { artifact, append, lastChunk } = artifactUpdate;
    steps.push([artifact.artifactId, artifact.parts, { append, lastChunk }]);
  }
  return steps;
}

describe("a task that a standard A2A caller asks for", () => {
  it("shows the caller each step as the handler takes it", async () => {
    await using setup = await setupAgent();
    const watched = gate();
    setup.agent.onTask(async (task) => {
      await watched.passed;
      await task.working();
      await task.working({
        parts: [{ text: "读" }],
        a2aMessage: { messageId: "m-1" },
        metadata: { step: 1 },
      });
      await task.addArtifact({ artifactId: "a", parts: [{ text: "1" }] }, { lastChunk: false });
      const more = { artifactId: "a", parts: [{ text: "2" }] };
      await task.addArtifact(more, { append: true, lastChunk: true });
      return { parts: [{ text: "完" }], a2aMessage: { messageId: "m-2" }, metadata: { step: 2 } };
    });
    await setup.agent.start();
    const events = callerOf(setup).streamMessage({ parts: [{ text: "请做" }] });
    assert.deepEqual(await seen(events, () => watched.open()), [
      "TASK_STATE_SUBMITTED",
      ["TASK_STATE_WORKING", undefined],
      ["TASK_STATE_WORKING", [{ text: "读" }], { step: 1 }],
      ["a", [{ text: "1" }], { append: false, lastChunk: false }],
      ["a", [{ text: "2" }], { append: true, lastChunk: true }],
      ["TASK_STATE_COMPLETED", [{ text: "完" }], { step: 2 }],
    ]);
    assert.deepEqual(setup.errors, []);
  });

  it("is seen by its handler in the words of A2A 1.0, and with all that was said", async () => {
    await using setup = await setupAgent();
    const asked: AskedOverA2a[] = [];
    const histories: string[][] = [];
    setup.agent.onTask(async (task) => {
      asked.push(task.a2a);
      const history = await task.history();
      histories.push(history.map(({ role, parts }) => `${role} ${String(parts[0]?.["text"])}`));
      if (!task.isFollowUp) task.askInput({ parts: [{ text: "哪一个?" }], a2aMessage: { messageId: "q-1" } });
    });
    await setup.agent.start();
    const caller = callerOf(setup);
    const message = {
      messageId: "m-1",
      parts: [{ kind: "text", text: "选" }, { file: { uri: "https://example.org/a" } }],
      metadata: { "https://example.org/x": 1 },
      extensions: ["https://example.org/x"],
      contextId: "ctx-1",
    };
    const options = { metadata: { trace: "t" }, acceptedOutputModes: ["text/plain"] };
    const { task } = await caller.sendMessage(message, options);
    assert.equal(task?.status.state, "TASK_STATE_INPUT_REQUIRED");
    assert.equal(task.status.message?.messageId, "q-1");
    const answered = await caller.sendMessage({
      taskId: task.id,
      messageId: "m-2",
      parts: [{ text: "红的" }],
    });
    assert.equal(answered.task?.status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(asked[0], {
      message: {
        messageId: "m-1",
        role: "ROLE_USER",
        parts: [{ text: "选" }, { url: "https://example.org/a" }],
        metadata: { "https://example.org/x": 1 },
        extensions: ["https://example.org/x"],
        taskId: task.id,
        contextId: "ctx-1",
      },
      metadata: { trace: "t" },
      acceptedOutputModes: ["text/plain"],
    });
    assert.deepEqual(histories, [["ROLE_USER 选"], ["ROLE_USER 选", "ROLE_AGENT 哪一个?", "ROLE_USER 红的"]]);
  });

  it("ends or waits as the handler says, with its words", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask((task) => {
      if (task.text === "auth")
        task.askAuth({ parts: [{ data: { url: "https://example.org/login" } }, { text: "登录" }] });
      if (task.text === "reject") task.reject({ parts: [{ text: "不" }], metadata: { why: "policy" } });
      if (task.text === "fail")
        task.fail({ parts: [{ data: { code: 7 } }], a2aMessage: { messageId: "m-f" } });
      if (task.text === "plain")
        task.answerPlainly({ parts: [{ text: "就这样" }], a2aMessage: { messageId: "m-p" } });
      return { text: "returned", plain: task.text === "return plain" };
    });
    await setup.agent.start();
    const ask = (text: string) => callerOf(setup).sendMessage({ parts: [{ text }] });
    const auth = await ask("auth");
    assert.equal(auth.task?.status.state, "TASK_STATE_AUTH_REQUIRED");
    assert.deepEqual(auth.task.status.message?.parts, [
      { data: { url: "https://example.org/login" } },
      { text: "登录" },
    ]);
    const rejected = await ask("reject");
    assert.equal(rejected.task?.status.state, "TASK_STATE_REJECTED");
    assert.deepEqual(rejected.task.status.message?.parts, [{ text: "不" }]);
    const failed = await ask("fail");
    assert.equal(failed.task?.status.state, "TASK_STATE_FAILED");
    assert.deepEqual(failed.task.status.message?.parts, [{ data: { code: 7 } }]);
    assert.equal(failed.task.status.message?.messageId, "m-f");
    const plain = await ask("plain");
    assert.equal(plain.task, undefined);
    assert.equal(plain.message?.messageId, "m-p");
    assert.deepEqual(plain.message?.parts, [{ text: "就这样" }]);
    assert.deepEqual((await ask("return plain")).message?.parts, [{ text: "returned" }]);
    const listed = await callerOf(setup).listTasks();
    assert.equal(listed.tasks.length, 3, "tasks that were answered with a plain message are not listed");
    assert.deepEqual(setup.errors, []);
  });

  it("may ask for an authorisation and go on when it comes another way", async () => {
    await using setup = await setupAgent();
    const granted = gate();
    setup.agent.onTask(async (task) => {
      await task.report("auth-required", "please log in");
      await granted.passed;
      await task.report("working", "thanks");
      return "done";
    });
    await setup.agent.start();
    const caller = callerOf(setup);
    const { task } = await caller.sendMessage({ parts: [{ text: "x" }] });
    assert.equal(task?.status.state, "TASK_STATE_AUTH_REQUIRED");
    granted.open();
    await setup.reaches(task.id, "completed");
  });

  it("may end a turn after a question that was asked at once", async () => {
    await using setup = await setupAgent();
    setup.agent.onTask(async (task) => {
      if (task.isFollowUp) return `into ${task.text}`;
      await task.report("input-required", "into what?");
      task.endTurn();
      return "not what counts";
    });
    await setup.agent.start();
    const caller = callerOf(setup);
    const { task } = await caller.sendMessage({ parts: [{ text: "translate" }] });
    assert.equal(task?.status.state, "TASK_STATE_INPUT_REQUIRED");
    const done = await caller.sendMessage({ taskId: task.id, parts: [{ text: "中文" }] });
    assert.deepEqual(done.task?.status.message?.parts, [{ text: "into 中文" }]);
  });
});

function isAppending({ path, body }: WireRequest): boolean {
  return path.endsWith("/artifacts") && (body as { readonly append?: boolean }).append === true;
}

describe("an artifact that comes in pieces", () => {
  it("grows for its readers, and says when it is complete", async () => {
    await using setup = await setupAgent();
    const watched = gate();
    const first = gate();
    async function* words(): AsyncGenerator<string> {
      await watched.passed;
      yield "你";
      yield "好";
      await first.passed;
      yield "世界";
    }
    setup.agent.onTask(async (task) => {
      await task.streamArtifact({ artifactId: "text", name: "译文" }, words());
      return "";
    });
    await setup.agent.start();
    const chunks: unknown[] = [];
    for await (const { artifactUpdate } of callerOf(setup).streamMessage({ parts: [{ text: "x" }] })) {
      watched.open();
      if (artifactUpdate === undefined) continue;
      const { artifact, append, lastChunk } = artifactUpdate;
      chunks.push([artifact["name"], artifact.parts, append, lastChunk]);
      first.open();
    }
    assert.deepEqual(chunks[0], ["译文", [{ text: "你好" }], false, false]);
    assert.deepEqual(chunks[1], ["译文", [{ text: "世界" }], true, chunks.length === 2]);
  });

  it("is there once, whichever request or answer got lost", async () => {
    await using setup = await setupAgent({ retries: 0 });
    setup.agent.onTask(async (task) => {
      const piece = (text: string) => ({ artifactId: "a", parts: [{ text }] });
      await task.addArtifact(piece("1"));
      // Not waited for one by one: they still come in order.
      await Promise.all(["2", "3", "4"].map((text) => task.addArtifact(piece(text), { append: true })));
      await task.report("input-required", "enough?");
      task.endTurn();
    });
    await setup.agent.start();
    for (const fault of ["lose_reply", "reset", "lose_reply", "reset"] as const) {
      setup.relay.once(isAppending, fault);
    }
    setup.relay.once(to("/status"), "lose_reply");
    const taskId = await setup.ask("please");
    const task = await setup.reaches(taskId, "input-required");
    assert.deepEqual(task.artifacts[0]?.parts, [{ text: "1" }, { text: "2" }, { text: "3" }, { text: "4" }]);
    await setup.agent.stop();
    const { messages } = await setup.direct.readMailbox(ASKER);
    assert.equal(messages.length, 1, "the question is asked once");
    assert.ok(
      setup.errors.every((error) => error === "report unavailable"),
      setup.errors.join(),
    );
  });
});
