import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import {
  AGENT,
  aRemoteTask,
  type RemoteCore,
  remoteCore,
  RpcError,
  saying,
} from "../../../testing/fake-agent.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";
import { workUnit } from "../mechanisms/own-claims.ts";
import { OutboundFailure } from "../../transports/egress/http-client.ts";

function unreachable(): never {
  throw new OutboundFailure("unreachable", "no connection");
}

/** A worker here leases what was added to the task. */
async function held(core: RemoteCore, taskId: string): Promise<{ message_id: string; lease_id: string }> {
  await core.send({ to: AGENT, type: "note", task_id: taskId, body: "还有" });
  const [item] = (await core.mailboxes.lease(core.operator, AGENT, {})).messages;
  assert.ok(item);
  return { message_id: item.message_id, lease_id: item.lease.id };
}

describe("a remote task", () => {
  it("is polled soon, then less and less often, and soon again after a change", async () => {
    await using core = await remoteCore();
    await core.taken();
    assert.equal(await core.waitMs(), 250);
    const waits: number[] = [];
    for (let poll = 0; poll < 40; poll += 1) {
      await core.pollNext();
      waits.push(await core.waitMs());
    }
    assert.deepEqual(
      waits,
      waits.toSorted((one, other) => one - other),
    );
    assert.equal(waits.at(-1), 15_000);
    core.agent.get = () => saying("WORKING", "一半了");
    await core.pollNext();
    assert.equal(await core.waitMs(), 250);
  });

  it("records what the agent says, once for each time", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    for (const text of ["开始", "开始", "一半", "一半"]) {
      core.agent.get = () => saying("WORKING", text);
      await core.pollNext();
    }
    const { updates } = await core.store.tasks.updates({
      tenant: DEFAULT_TENANT,
      taskId,
      afterN: 0,
      withArtifacts: true,
      limit: 100,
      bytesMax: LIMITS.answerBytesMax,
    });
    const said = updates.map(({ step }) => (step.kind === "status" ? step.said?.text : undefined));
    assert.deepEqual(said, [undefined, "开始", "一半"]);
  });

  it("is given up after an hour without an answer, counted in polls", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = unreachable;
    const startMs = core.clock.nowMs();
    let polls = 0;
    while ((await core.task(taskId)).state === "working") {
      await core.pollNext();
      polls += 1;
    }
    const { state, status_text: why } = await core.task(taskId);
    assert.deepEqual([state, polls], ["failed", 21]);
    assert.ok(core.clock.nowMs() - startMs > 3_600_000 && core.clock.nowMs() - startMs < 4_500_000);
    assert.match(why ?? "", /could not be asked for an hour .* no connection to the endpoint/);
    assert.equal(await core.waitMs(), Infinity);
  });

  it("counts failed polls from zero again after an answer", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    for (let time = 0; time < 3; time += 1) {
      core.agent.get = unreachable;
      for (let poll = 0; poll < 15; poll += 1) await core.pollNext();
      core.agent.get = () => aRemoteTask();
      await core.pollNext();
    }
    assert.equal((await core.task(taskId)).state, "working");
  });

  it("fails when the agent does not know it in two polls, not in one", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => {
      throw new RpcError(-32001, "Task not found");
    };
    await core.pollNext();
    core.agent.get = () => aRemoteTask();
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "working");
    core.agent.get = () => {
      throw new RpcError(-32001, "Task not found");
    };
    await core.pollNext();
    await core.pollNext();
    const { state, status_text: why } = await core.task(taskId);
    assert.equal(state, "failed");
    assert.match(why ?? "", /no longer knows the task/);
  });

  it("fails at once when the agent cannot be asked about tasks at all", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => {
      throw new RpcError(-32601, "Method not found");
    };
    await core.pollNext();
    assert.match((await core.task(taskId)).status_text ?? "", /does not tell what became of the task/);
  });

  it("fails when the agent cancels it by itself", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => saying("CANCELED", "没空");
    await core.pollNext();
    const { state, status_text: why } = await core.task(taskId);
    assert.deepEqual([state, why], ["failed", "canceled by the remote agent: 没空"]);
    assert.deepEqual(core.agent.calledFor("CancelTask"), []);
    assert.equal(await core.waitMs(), Infinity);
  });

  it("is canceled there once when it is canceled here, and polled no more", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    await core.tasks.cancel(core.lulu, taskId, {});
    await core.pollNext();
    assert.deepEqual(core.agent.calledFor("CancelTask"), [{ id: "他们的任务" }]);
    assert.equal(await core.waitMs(), Infinity);
    assert.equal((await core.task(taskId)).state, "canceled");
  });

  it("is canceled there when its deadline has passed here, and when its answer came too late", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken({ deadline_ms: core.clock.nowMs() + 1_000 });
    core.agent.get = () => saying("COMPLETED", "晚了");
    core.clock.advance(1_000);
    // Too late for an answer, though the sweep has not failed the task yet.
    assert.equal(await core.poll(), 1);
    assert.equal((await core.task(taskId)).state, "working");
    await core.sweep.step();
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "failed");
    assert.equal(core.agent.calledFor("CancelTask").length, 1);
  });

  it("is canceled there also when it was canceled here during the send", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.ask();
    core.agent.send = async () => {
      await core.tasks.cancel(core.lulu, taskId, {});
      return { task: aRemoteTask() };
    };
    assert.deepEqual(await core.push(), ["delivered"]);
    assert.equal(await core.poll(), 1);
    assert.equal(core.agent.calledFor("CancelTask").length, 1);
  });

  it("is polled no more when it has another assignee", async () => {
    await using core = await remoteCore();
    const { taskId, messageId } = await core.taken();
    const handoff = {
      from: AGENT,
      to: "zhiwei",
      type: "handoff",
      reply_to: messageId,
      body: "你来",
    } as const;
    await core.messages.send(core.operator, handoff);
    await core.pollNext();
    assert.deepEqual([core.agent.calledFor("CancelTask").length, await core.waitMs()], [0, Infinity]);
    assert.equal((await core.task(taskId)).state, "submitted");
  });

  it("fails when the agent may not answer, so that its requester does not wait for ever", async () => {
    await using core = await remoteCore({ capabilities: true });
    const { taskId } = await core.ask();
    assert.deepEqual(await core.push(), ["delivered"]);
    core.agent.send = () => ({ task: aRemoteTask() });
    await core.poll();
    const { state, status_text: why } = await core.task(taskId);
    assert.equal(state, "failed");
    assert.match(why ?? "", /cannot be kept: .*a2a.respond/);
  });

  it("is polled less and less often while another worker holds it, and recorded when it is released", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const lease = await held(core, taskId);
    core.agent.get = () => saying("COMPLETED", "好了");
    const waits: number[] = [];
    for (let poll = 0; poll < 4; poll += 1) {
      await core.pollNext();
      waits.push(await core.waitMs());
    }
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000]);
    assert.equal((await core.task(taskId)).state, "working");
    await core.mailboxes.release(core.operator, AGENT, lease);
    await core.pollNext();
    assert.equal((await core.task(taskId)).state, "completed");
  });

  it("is left to the worker that holds it after the last poll", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    await held(core, taskId);
    core.agent.get = () => saying("COMPLETED", "好了");
    let polls = 0;
    for (; (await core.waitMs()) !== Infinity; polls += 1) await core.pollNext();
    assert.deepEqual([polls, (await core.task(taskId)).state], [21, "working"]);
  });

  it("fails after the last poll when recording fails every time, which is reported", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => {
      throw new Error("坏了");
    };
    const { signal } = new AbortController();
    let reports = 0;
    while ((await core.task(taskId)).state === "working") {
      core.clock.advance(await core.waitMs());
      const claim = await core.claim(workUnit("remote-task", DEFAULT_TENANT, taskId));
      const poll = core.remoteWork.poll({ tenant: DEFAULT_TENANT, taskId }, { claim, signal });
      await poll.catch(() => (reports += 1));
    }
    assert.equal(reports, 20);
    assert.match((await core.task(taskId)).status_text ?? "", /cannot be kept: internal error/);
    assert.equal(await core.poll(), 1);
    assert.equal(core.agent.calledFor("CancelTask").length, 1);
  });

  it("keeps an answer that comes during a poll", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = async () => {
      const row = await core.store.remoteTasks.get(DEFAULT_TENANT, taskId);
      assert.ok(row);
      const message = { messageId: "话", role: "ROLE_AGENT", parts: [{ text: "顺便说" }] } as const;
      const changes = { tenant: DEFAULT_TENANT, remoteTasks: [{ ...row, answer: { message } }], events: [] };
      await core.store.commit(changes);
      return saying("WORKING", "旧的");
    };
    await core.pollNext();
    core.agent.get = () => saying("WORKING", "旧的");
    await core.poll();
    assert.equal((await core.task(taskId)).status_text, "顺便说");
  });
});

describe("an artifact of a remote task", () => {
  const made = (...texts: readonly string[]): object =>
    aRemoteTask({ artifacts: [{ artifactId: "文", name: "稿", parts: texts.map((text) => ({ text })) }] });

  it("grows here as it grows there, and is replaced when it has changed", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const steps: readonly (readonly string[])[] = [
      ["一"],
      ["一", "二"],
      ["一", "二"],
      ["一", "二", "三"],
      ["改"],
    ];
    for (const texts of steps) {
      core.agent.get = () => made(...texts);
      await core.pollNext();
    }
    const { updates } = await core.store.tasks.updates({
      tenant: DEFAULT_TENANT,
      taskId,
      afterN: 0,
      withArtifacts: true,
      limit: 100,
      bytesMax: LIMITS.answerBytesMax,
    });
    const pieces = updates.flatMap(({ step }) =>
      step.kind === "artifact"
        ? [[step.append, step.artifact.parts.map((part) => part["text"]).join("")]]
        : [],
    );
    assert.deepEqual(pieces, [
      [false, "一"],
      [true, "二"],
      [true, "三"],
      [false, "改"],
    ]);
    const { artifacts } = await core.task(taskId);
    assert.deepEqual(artifacts, [{ artifactId: "文", name: "稿", parts: [{ text: "改" }] }]);
  });

  it("may have more parts than one message has, and no id", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    const parts = Array.from({ length: 250 }, (_, index) => ({ text: `${index};` }));
    core.agent.get = () =>
      aRemoteTask({ artifacts: [{ parts }, { parts: [{ text: "二" }] }, { parts: [] }] });
    await core.pollNext();
    const { artifacts } = await core.task(taskId);
    assert.deepEqual(
      artifacts.map(({ artifactId, parts: { length } }) => [artifactId, length]),
      [
        ["artifact-1", 250],
        ["artifact-2", 1],
      ],
    );
  });

  it("fails the task here and cancels it there when it is too large", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => made("x".repeat(LIMITS.taskArtifactBytesMax));
    await core.pollNext();
    const { state, status_text: why } = await core.task(taskId);
    assert.equal(state, "failed");
    assert.match(why ?? "", /cannot be kept: artifacts/);
    await core.poll();
    assert.equal(core.agent.calledFor("CancelTask").length, 1);
  });

  for (const [title, theirs, text] of [
    ["what it said last", saying("COMPLETED", "完成"), "完成"],
    [
      "its artifacts",
      aRemoteTask({
        status: { state: "completed" },
        artifacts: [{ parts: [{ text: "成" }, { text: "果" }] }],
      }),
      "成果",
    ],
    [
      "the last it said at all",
      aRemoteTask({
        status: { state: "TASK_STATE_COMPLETED" },
        history: [
          { role: "ROLE_AGENT", parts: [{ text: "早先" }] },
          { role: "agent", parts: [{ text: "最后" }] },
          { role: "ROLE_USER", parts: [{ text: "谢谢" }] },
        ],
      }),
      "最后",
    ],
    ["a word of ours", aRemoteTask({ status: { state: "TASK_STATE_COMPLETED" } }), "done"],
  ] as const) {
    it(`is answered with ${title}`, async () => {
      await using core = await remoteCore();
      const { taskId } = await core.taken();
      core.agent.get = () => theirs;
      await core.pollNext();
      const { state, result_message_id: resultId } = await core.task(taskId);
      assert.equal(state, "completed");
      assert.equal((await core.message(resultId ?? "")).body, text);
    });
  }

  it("is cut where it is longer than a message", async () => {
    await using core = await remoteCore();
    const { taskId } = await core.taken();
    core.agent.get = () => saying("COMPLETED", "字".repeat(LIMITS.bodyBytesMax / 2), "m");
    await core.pollNext();
    const { body, parts } = await core.message((await core.task(taskId)).result_message_id ?? "");
    assert.ok(body.endsWith(" […]") && Buffer.byteLength(body) <= LIMITS.bodyBytesMax / 2);
    assert.equal(parts, undefined);
  });
});
