import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AgentCard, Message, Task, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import { AgentEvent, type RequestContext } from "@a2a-js/sdk/server";
import type { A2aTask } from "@a2a-relay/protocol";
import { ASKER, gate, WORKER } from "../../testing/agent-setup.ts";
import { SdkAgentExecutor } from "../../testing/sdk-agent-executor.ts";
import { executorOf, said, serve, stateOf } from "../../testing/served-executor.ts";
import type { AgentTask } from "../agent/agent-task.ts";
import { RELAY_TASK_STATE } from "./executor-agent.ts";

describe("an executor of the SDK behind a relay", () => {
  it("completes, fails, rejects, asks and answers as it does behind its own server", async () => {
    await using served = await serve(new SdkAgentExecutor());
    const echo = await served.ask("你好");
    assert.equal(stateOf(echo), "COMPLETED");
    assert.equal(echo.status.message, undefined, "nothing is said that the executor did not say");
    assert.deepEqual(echo.artifacts, [
      { artifactId: "answer", name: "answer", parts: [{ text: "echo: 你好" }] },
    ]);
    const outcomes = [];
    for (const word of ["fail 不行", "reject 不做", "auth 登录", "status 好了"]) {
      const task = await served.ask(word);
      outcomes.push([stateOf(task), said(task)]);
    }
    assert.deepEqual(outcomes, [
      ["FAILED", "不行"],
      ["REJECTED", "不做"],
      ["AUTH_REQUIRED", "登录"],
      ["COMPLETED", "好了"],
    ]);
    const plain = await served.caller.sendMessage({ parts: [{ text: "message 就这样" }] });
    assert.equal(plain.task, undefined);
    assert.deepEqual(plain.message?.parts, [{ text: "就这样" }]);
    const asked = await served.ask("ask 哪一个?");
    assert.deepEqual([stateOf(asked), said(asked)], ["INPUT_REQUIRED", "哪一个?"]);
    const answered = await served.ask("红的", { taskId: asked.id });
    assert.deepEqual(
      [stateOf(answered), answered.artifacts?.[0]?.parts],
      ["COMPLETED", [{ text: "answered: 红的" }]],
    );
    const parts = await served.ask("parts");
    assert.deepEqual(parts.artifacts?.[0]?.parts, [
      { text: "看附件" },
      { data: { answer: 42 } },
      { raw: "5paH5Lu2", filename: "a.txt", mediaType: "text/plain" },
      { url: "https://example.org/a.png", mediaType: "image/png" },
    ]);
    assert.deepEqual(served.errors, []);
  });

  it("streams each event to the caller, in the order in which they were published", async () => {
    const watched = gate();
    const executor = executorOf(async (_context, says) => {
      await watched.passed;
      says.task({ status: { state: "TASK_STATE_SUBMITTED" } });
      says.status("WORKING", "一", { metadata: { step: 1 } });
      says.artifact("a", "1", { lastChunk: false });
      says.artifact("a", "2", { append: true });
      says.status("WORKING", "二");
      says.artifact("a", "", { append: true, lastChunk: true });
      says.artifact("b", "added to nothing", { append: true, lastChunk: true });
      says.status("COMPLETED", "三");
      says.status("WORKING", "after the end");
    });
    await using served = await serve(executor);
    const seen: unknown[] = [];
    for await (const event of served.caller.streamMessage("请做")) {
      const { statusUpdate, artifactUpdate } = event;
      watched.open();
      if (statusUpdate !== undefined) seen.push(statusUpdate.status.message?.messageId);
      if (artifactUpdate === undefined) continue;
      const { artifact, append, lastChunk } = artifactUpdate;
      seen.push([artifact.artifactId, artifact.parts[0]?.["text"], append, lastChunk]);
    }
    assert.deepEqual(seen, [
      "m-一",
      ["a", "1", false, false],
      ["a", "2", true, false],
      "m-二",
      ["a", "", true, true],
      ["b", "added to nothing", false, true],
      "m-三",
    ]);
  });

  it("gets the message of the caller, its name, and the current task", async () => {
    const contexts: RequestContext[] = [];
    const executor = executorOf((context, says) => {
      contexts.push(context);
      if (context.task !== undefined) return says.status("COMPLETED");
      says.artifact("draft", "稿", { lastChunk: true });
      return says.status("INPUT_REQUIRED", "?");
    });
    await using served = await serve(executor);
    const { direct } = served.setup;
    const more = { metadata: { a: 1 }, extensions: ["https://example.org/x"] };
    const first = await served.ask("一", more);
    await served.ask("二", { taskId: first.id, referenceTaskIds: [first.id, "task_unknown"] });
    const [begin, goOn] = contexts;
    assert.ok(begin !== undefined && goOn !== undefined);
    assert.equal(begin.task, undefined);
    assert.equal(begin.taskId, first.id);
    assert.equal(begin.contextId, first.contextId);
    const { metadata, extensions, taskId } = Message.toJSON(begin.userMessage) as A2aTask & {
      extensions: unknown;
    };
    assert.deepEqual([metadata, extensions, taskId], [more.metadata, more.extensions, first.id]);
    assert.deepEqual(begin.context.requestedExtensions, more.extensions);
    assert.equal(begin.context.requestedVersion, "1.0");
    assert.deepEqual(
      [begin.context.user?.isAuthenticated, begin.context.user?.userName],
      [false, "guest@relay"],
    );
    assert.equal((begin.context.state.get(RELAY_TASK_STATE) as AgentTask).id, first.id);
    const task = Task.toJSON(goOn.task as Task) as A2aTask;
    assert.deepEqual(
      task.history?.map(({ parts }) => parts[0]?.["text"]),
      ["一", "?", "二"],
    );
    assert.deepEqual(task.artifacts?.[0]?.parts, [{ text: "稿" }]);
    assert.deepEqual(
      goOn.referenceTasks?.map(({ id }) => id),
      [first.id],
    );
    const native = await served.setup.ask("本地", {});
    await served.setup.reaches(native, "input-required");
    assert.equal(contexts[2]?.context.user?.userName, ASKER);
    assert.equal((await direct.task(native)).requester, ASKER);
  });

  it("fails with the words of what it throws, also before its first event, and goes on with others", async () => {
    await using served = await serve(new SdkAgentExecutor());
    const task = await served.ask("throw 火星文");
    assert.deepEqual([stateOf(task), said(task)], ["FAILED", "火星文"]);
    assert.deepEqual(served.errors, ["火星文"]);
    assert.equal(stateOf(await served.ask("again")), "COMPLETED");
  });

  it("fails when it ends without a word about the end", async () => {
    await using served = await serve(executorOf((_context, says) => says.status("WORKING")));
    const task = await served.ask("x");
    assert.equal(stateOf(task), "FAILED");
    assert.equal(said(task), "the executor ended without saying how the task ended");
  });

  it("hears that its task was canceled, and what it says then changes nothing", async () => {
    const begun = gate<string>();
    const canceled = gate<string>();
    const released = gate();
    const executor = executorOf(
      async (context, says) => {
        says.status("WORKING");
        begun.open(context.taskId);
        await released.passed;
        says.status("COMPLETED", "too late");
      },
      async (taskId, bus) => {
        bus.publish(
          AgentEvent.statusUpdate(
            TaskStatusUpdateEvent.fromJSON({ taskId, status: { state: "TASK_STATE_CANCELED" } }),
          ),
        );
        canceled.open(taskId);
        released.open();
      },
    );
    await using served = await serve(executor);
    const { task } = await served.caller.sendMessage("x", { returnImmediately: true });
    assert.equal(await begun.passed, task?.id);
    await served.caller.cancelTask(task?.id ?? "");
    assert.equal(await canceled.passed, task?.id);
    assert.equal(stateOf(await served.ask("next")), "COMPLETED");
    assert.equal(stateOf(await served.caller.getTask(task?.id ?? "")), "CANCELED");
    assert.deepEqual(served.errors, []);
  });

  it("may wait for an authorisation that comes another way", async () => {
    const granted = gate();
    const executor = executorOf(async (_context, says) => {
      says.status("AUTH_REQUIRED", "登录");
      await granted.passed;
      says.status("WORKING");
      says.status("COMPLETED", "好了");
    });
    await using served = await serve(executor);
    const task = await served.ask("x");
    assert.equal(stateOf(task), "AUTH_REQUIRED");
    granted.open();
    await served.setup.reaches(task.id, "completed");
    assert.equal(said(await served.caller.getTask(task.id)), "好了");
  });

  it("may publish a whole task, and a task again, without doubling anything", async () => {
    const watched = gate();
    const executor = executorOf(async (context, says) => {
      if (context.task !== undefined) {
        await watched.passed;
        says.bus.publish(AgentEvent.task(context.task));
      }
      const artifacts = [
        { artifactId: "whole", name: "整", parts: [{ text: context.task === undefined ? "1" : "2" }] },
      ];
      const state = context.task === undefined ? "TASK_STATE_INPUT_REQUIRED" : "TASK_STATE_COMPLETED";
      says.task({ status: { state }, artifacts });
    });
    await using served = await serve(executor);
    const asked = await served.ask("x");
    assert.deepEqual(asked.artifacts?.[0]?.parts, [{ text: "1" }]);
    const updates: unknown[] = [];
    const states: unknown[] = [];
    for await (const event of served.caller.streamMessage("y", { taskId: asked.id })) {
      watched.open();
      if (event.statusUpdate !== undefined) states.push(event.statusUpdate.status.state);
      if (event.artifactUpdate !== undefined) updates.push(event.artifactUpdate.artifact.parts);
    }
    assert.deepEqual(updates, [[{ text: "2" }]], "what was there already is not told again");
    assert.deepEqual(states, ["TASK_STATE_COMPLETED"]);
    const task = await served.caller.getTask(asked.id);
    assert.equal(task.artifacts?.length, 1);
    assert.equal(task.history?.length, 2);
  });

  it("may publish more pieces than an artifact has room for", async () => {
    const executor = executorOf((_context, says) => {
      for (let index = 0; index < 3_000; index += 1) says.artifact("a", "字", { append: index > 0 });
      says.status("COMPLETED");
    });
    await using served = await serve(executor);
    const task = await served.ask("x");
    const text = task.artifacts?.[0]?.parts.map((part) => part["text"]).join("");
    assert.equal(text, "字".repeat(3_000));
    assert.equal(stateOf(task), "COMPLETED");
  });

  it("goes on when the relay was away, and each of its events is told once", async () => {
    await using served = await serve(new SdkAgentExecutor());
    let requests = 0;
    served.setup.relay.fault = ({ path }) => {
      if (!path.endsWith("/artifacts") && !path.endsWith("/status")) return undefined;
      requests += 1;
      return (["reset", "lose_reply", undefined] as const)[requests % 3];
    };
    const task = await served.ask("stream 一 二 三 四");
    assert.deepEqual(
      task.artifacts?.[0]?.parts.map((part) => part["text"]),
      ["一", "二", "三", "四"],
    );
    assert.equal(stateOf(task), "COMPLETED");
  });

  it("leaves no half artifact behind after a run that was ended, though each run makes up new ids", async () => {
    let runs = 0;
    const begun = gate();
    const executor = executorOf(async (context, says) => {
      runs += 1;
      says.status("WORKING");
      says.artifact(`run-${runs}`, "上", { lastChunk: false });
      if (runs === 1) {
        says.status("WORKING", "half");
        await served.setup.reaches(context.taskId, "working");
        begun.open();
        await new Promise(() => {});
      }
      says.artifact(`run-${runs}`, "下", { append: true, lastChunk: true });
      says.status("COMPLETED");
    });
    await using served = await serve(executor, { leaseMs: 600 });
    const { task } = await served.caller.sendMessage("x", { returnImmediately: true });
    await begun.passed;
    const half = async (): Promise<boolean> =>
      (await served.setup.direct.task(task?.id ?? "")).artifacts.length > 0;
    while (!(await half()));
    const { entries } = await served.setup.direct.queue({ agent: WORKER, state: "leased" });
    const leases = entries.map(({ message_id, lease }) => ({ message_id, lease_id: lease?.id ?? "" }));
    await served.setup.direct.release(WORKER, { leases });
    await served.setup.reaches(task?.id ?? "", "completed");
    const done = await served.caller.getTask(task?.id ?? "");
    assert.deepEqual(
      done.artifacts?.map(({ parts }) => parts.map((part) => part["text"]).join("")),
      ["上下"],
    );
  });

  it("answers agents that read text with the text of its artifacts", async () => {
    await using served = await serve(new SdkAgentExecutor());
    const task = await served.setup.reaches(await served.setup.ask("你好"), "completed");
    assert.equal(task.status_text, "echo: 你好");
  });

  it("registers the card that its own server had, in the SDK's form or as JSON", async () => {
    const json = {
      name: "翻译",
      description: "translates",
      version: "1.0.0",
      skills: [{ id: "zh", name: "zh", description: "中文", tags: ["zh"] }],
      securitySchemes: {
        key: { apiKeySecurityScheme: { location: "header", name: "X-Key", description: "" } },
      },
    };
    for (const card of [json, AgentCard.fromJSON(json)]) {
      await using served = await serve(new SdkAgentExecutor(), { card });
      const registered = await served.setup.direct.agentCard(WORKER);
      assert.equal(registered["name"], "翻译");
      assert.deepEqual((registered["skills"] as { id: string }[])[0]?.id, "zh");
      assert.ok(!JSON.stringify(registered).includes("$case"));
    }
  });
});
