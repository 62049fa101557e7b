import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS, RelayError, type TaskView } from "@a2a-relay/protocol";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { askedTask } from "../../../testing/asked-task.ts";
import { refused } from "../../../testing/refusal.ts";

const PARTS = [{ kind: "text", text: "第一段" }];

describe("artifacts", () => {
  it("are put by id: new ones at the end, known ones at their old position", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const put = (artifact: object, append?: boolean): Promise<TaskView> =>
      core.tasks.addArtifact(core.operator, taskId, {
        artifact,
        ...(append === undefined ? {} : { append }),
      });
    await put({ artifactId: "a", name: "报告", parts: PARTS });
    await put({ artifact_id: "b", parts: [{ text: "二" }], custom: 1 });
    await put({ artifactId: "a", parts: [{ text: "新的" }] });
    const { artifacts } = await put({ artifactId: "b", parts: [{ text: "三" }] }, true);
    assert.deepEqual(artifacts, [
      { artifactId: "a", parts: [{ text: "新的" }] },
      { artifactId: "b", custom: 1, parts: [{ text: "二" }, { text: "三" }] },
    ]);
    const made = await put({ parts: PARTS });
    assert.equal(made.artifacts.length, 3);
    assert.match(made.artifacts[2]?.artifactId ?? "", /^[0-9a-f-]{36}$/);
  });

  it("have one digest in the event of the end, and no events of their own", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const head = (await core.store.journal.chain("default")).head;
    await core.tasks.addArtifact(core.operator, taskId, { artifact: { artifactId: "a", parts: PARTS } });
    assert.deepEqual((await core.store.journal.chain("default")).head, head);
    await core.tasks.complete(core.operator, taskId, { artifacts: [{ artifactId: "b", parts: PARTS }] });
    const [event] = (await core.journal.events(core.operator, { type: "task.completed" })).events;
    assert.equal(event?.data["artifacts"], 2);
    assert.match(String(event?.data["artifacts_digest"]), /^[0-9a-f]{64}$/);
  });

  it("are bounded in number and in parts, also when they come with the end", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    const many = (count: number, parts: readonly object[] = [{ text: "x" }]): readonly object[] =>
      Array.from({ length: count }, (_each, index) => ({ artifactId: `n${index}`, parts }));
    await tasks.addArtifact(operator, taskId, { artifact: { artifactId: "a", parts: PARTS } });
    await refused(tasks.complete(operator, taskId, { artifacts: many(LIMITS.artifactsMax) }), "too_large");
    await refused(
      tasks.complete(operator, taskId, { artifacts: many(LIMITS.artifactsMax + 1) }),
      "too_large",
    );
    const full = Array.from({ length: LIMITS.partsMax }, () => ({ text: "x" }));
    const artifact = { artifactId: "a", parts: full };
    const pieces = Math.floor(LIMITS.artifactPartsMax / LIMITS.partsMax);
    for (let piece = 1; piece < pieces; piece += 1) {
      await tasks.addArtifact(operator, taskId, { artifact, append: true });
    }
    await refused(tasks.addArtifact(operator, taskId, { artifact, append: true }), "too_large");
    await tasks.complete(operator, taskId, { artifacts: many(LIMITS.artifactsMax - 1) });
    assert.equal((await tasks.get(operator, taskId)).artifacts.length, LIMITS.artifactsMax);
  });

  it("are bounded in bytes, all of a task together, however many chunks they have", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    const parts = [{ text: "知".repeat(340_000) }];
    const add = (artifactId: string, append: boolean): Promise<TaskView> =>
      tasks.addArtifact(operator, taskId, { artifact: { artifactId, parts }, append });
    for (let count = 0; count < 4; count += 1) {
      await add(`n${count}`, false);
      await add(`n${count}`, true);
    }
    const before = await tasks.get(operator, taskId);
    core.clock.advance(1_000);
    await refused(add("new", false), "too_large", /at most 8388608 bytes as JSON, these would have 9180/);
    await refused(add("n0", true), "too_large");
    const artifacts = [{ artifactId: "new", parts }];
    await refused(tasks.complete(operator, taskId, { artifacts }), "too_large");
    assert.deepEqual(await tasks.get(operator, taskId), before);
    assert.deepEqual(await core.inboxOf(LULU), []);
    await add("n0", false);
    await add("new", false);
    await tasks.complete(operator, taskId, { text: "好了" });
  });

  it("may come from many workers at once, and all of them stay", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    const ids = Array.from({ length: 64 }, (_each, index) => `n${index}`);
    await Promise.all(
      ids.map((artifactId) =>
        tasks.addArtifact(operator, taskId, { artifact: { artifactId, parts: PARTS } }),
      ),
    );
    const { artifacts } = await tasks.get(operator, taskId);
    assert.deepEqual(
      artifacts.map(({ artifactId }) => artifactId),
      ids,
    );
    const appended = { artifact: { artifactId: "n0", parts: PARTS }, append: true };
    await Promise.all(ids.map(() => tasks.addArtifact(operator, taskId, appended)));
    assert.equal((await tasks.get(operator, taskId)).artifacts[0]?.parts.length, 65);
  });

  it("may come over two relays at once, and every piece stays", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const relays = [core, core.beside()];
    const artifact = { artifactId: "n0", parts: PARTS };
    await core.tasks.addArtifact(core.operator, taskId, { artifact });
    const appended = { artifact, append: true };
    const adding = Array.from({ length: 16 }, () =>
      relays.map(({ tasks }) => tasks.addArtifact(core.operator, taskId, appended)),
    );
    await Promise.all(adding.flat());
    assert.equal((await core.tasks.get(core.operator, taskId)).artifacts[0]?.parts.length, 33);
  });

  it("do not keep out a reply that ends the task while many of them come", async () => {
    const { core, taskId, requestId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    const adding = Promise.allSettled(
      Array.from({ length: 64 }, (_each, index) =>
        tasks.addArtifact(operator, taskId, { artifact: { artifactId: `n${index}`, parts: PARTS } }),
      ),
    );
    await core.send({ type: "reply", from: ZHIWEI, to: LULU, reply_to: requestId, body: "好了" });
    const added = await adding;
    const late = added.filter((each) => each.status === "rejected");
    assert.ok(late.every(({ reason }) => reason instanceof RelayError && reason.code === "task_finished"));
    const { state, artifacts } = await tasks.get(operator, taskId);
    assert.deepEqual([state, artifacts.length], ["completed", added.length - late.length]);
  });

  it("are refused without parts, and cannot be appended to before they exist", async () => {
    const { core, taskId } = await askedTask();
    await using _ = core;
    const { tasks, operator } = core;
    for (const artifact of [
      undefined,
      {},
      { parts: [] },
      { parts: ["x"] },
      { artifactId: "", parts: PARTS },
    ]) {
      await refused(tasks.addArtifact(operator, taskId, { artifact }), "invalid_argument");
    }
    const artifact = { artifactId: "a", parts: PARTS };
    await refused(tasks.addArtifact(operator, taskId, { artifact, append: true }), "not_found");
  });
});
