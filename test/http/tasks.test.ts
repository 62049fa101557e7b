import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const ARTIFACT = { artifactId: "a", parts: [{ kind: "text", text: "报告" }] };

describe("a task over HTTP", () => {
  it("is worked on, given artifacts and completed, with one result", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    const path = `/tasks/${task_id}`;
    const working = await relay.post(`${path}/status`, { state: "working", text: "在看" });
    assert.deepEqual([working.status, working.json.task.state], [200, "working"]);
    await relay.post(`${path}/artifacts`, { artifact: ARTIFACT });
    const added = await relay.post(`${path}/artifacts`, { artifact: ARTIFACT, append: true });
    assert.equal(added.json.task.artifacts[0]?.parts.length, 2);
    const done = await relay.post(`${path}/complete`, { text: "好了", result_status: "partial" });
    assert.deepEqual([done.json.task.state, done.json.task.result_status], ["completed", "partial"]);
    assert.deepEqual((await relay.get(path)).json.task, done.json.task);
    const { messages } = (await relay.get(`/mailbox/${LULU}`)).json;
    assert.deepEqual(
      messages.map(({ message }) => [message.body, message["task_state"]]),
      [["好了", "completed"]],
    );
  });

  it("answers the same completion as before and refuses another", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    const first = await relay.post(`/tasks/${task_id}/complete`, { text: "好了" });
    const again = await relay.post(`/tasks/${task_id}/complete`, { text: "好了" });
    assert.deepEqual([again.status, again.json], [200, first.json]);
    const other = relay.post(`/tasks/${task_id}/complete`, { text: "没好" });
    const error = await relay.refused(other, "task_finished");
    assert.deepEqual(error.details, { task_id, state: "completed" });
  });

  it("is completed, failed, rejected or canceled with hardly a word", async () => {
    await using relay = await openHttpRelay();
    const ends: readonly [verb: string, body: object | undefined, state: string][] = [
      ["complete", undefined, "completed"],
      ["cancel", undefined, "canceled"],
      ["fail", { reason: "坏了" }, "failed"],
      ["reject", { reason: "不做" }, "rejected"],
    ];
    for (const [verb, body, state] of ends) {
      const { task_id } = await relay.send({ type: "request" });
      const { status, json } = await relay.post(`/tasks/${task_id}/${verb}`, body);
      assert.deepEqual([status, json.task.state], [200, state]);
    }
  });

  it("of leased work needs the lease", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    const { lease_id } = await relay.lease();
    const complete = (body: object) => relay.post(`/tasks/${task_id}/complete`, body);
    await relay.refused(complete({}), "lease_required");
    await relay.refused(complete({ lease_id: "another" }), "lease_lost");
    assert.equal((await complete({ lease_id })).status, 200);
  });

  it("that was canceled says so to its worker", async () => {
    await using relay = await openHttpRelay();
    const { task_id } = await relay.send({ type: "request" });
    await relay.post(`/tasks/${task_id}/cancel`, { reason: "不用了" });
    await relay.refused(relay.post(`/tasks/${task_id}/complete`, {}), "task_canceled");
    await relay.refused(relay.post(`/tasks/${task_id}/status`, { state: "working" }), "task_canceled");
  });

  const wrong: readonly [verb: string, body: unknown][] = [
    ["status", undefined],
    ["status", {}],
    ["status", { state: "completed" }],
    ["status", { state: "working", parts: [] }],
    ["artifacts", {}],
    ["artifacts", { artifact: { parts: "text" } }],
    ["artifacts", { artifact: ARTIFACT, append: 1 }],
    ["complete", { text: 7 }],
    ["complete", { result_status: "error" }],
    ["complete", []],
    ["fail", {}],
    ["fail", { reason: "" }],
    ["reject", { reason: "  " }],
    ["cancel", { reason: 7 }],
    ["cancel", "please"],
  ];
  for (const [verb, body] of wrong) {
    it(`refuses ${verb} with ${JSON.stringify(body) ?? "nothing"}`, async () => {
      await using relay = await openHttpRelay();
      const { task_id } = await relay.send({ type: "request" });
      const payload = typeof body === "string" ? JSON.stringify(body) : body;
      await relay.refused(relay.post(`/tasks/${task_id}/${verb}`, payload), "invalid_argument");
      assert.equal((await relay.get(`/tasks/${task_id}`)).json.task.state, "submitted");
    });
  }

  it("that is unknown is not found by any verb", async () => {
    await using relay = await openHttpRelay();
    const bodies: Readonly<Record<string, object>> = {
      status: { state: "working" },
      artifacts: { artifact: ARTIFACT },
      complete: {},
      fail: { reason: "x" },
      reject: { reason: "x" },
      cancel: {},
    };
    for (const [verb, body] of Object.entries(bodies)) {
      await relay.refused(relay.post(`/tasks/nothing/${verb}`, body), "not_found");
    }
    await relay.refused(relay.get("/tasks/nothing"), "not_found");
    await relay.refused(relay.get("/tasks/nothing/tree"), "not_found");
    await relay.refused(relay.get("/tasks/a%5Cb"), "invalid_argument");
  });
});

describe("GET /tasks", () => {
  it("lists by state, agent, thread and parent, page by page", async () => {
    await using relay = await openHttpRelay();
    const parent = (await relay.send({ type: "request", thread_id: "t1" })).task_id;
    const child = (await relay.send({ from: ZHIWEI, to: LULU, type: "request", parent })).task_id;
    await relay.post(`/tasks/${child}/complete`);
    const ids = async (query: string): Promise<readonly string[]> =>
      (await relay.get(`/tasks?${query}`)).json.tasks.map(({ id }) => id);
    assert.deepEqual(await ids(""), [parent, child]);
    assert.deepEqual(await ids("state=completed"), [child]);
    assert.deepEqual(await ids("thread_id=t1"), [parent]);
    assert.deepEqual(await ids(`parent=${parent}`), [child]);
    assert.deepEqual(await ids("agent=lulu&limit=1"), [parent]);
    const { cursor } = (await relay.get("/tasks?limit=1")).json;
    assert.deepEqual(await ids(`since=${cursor}`), [child]);
    await relay.refused(relay.get("/tasks?state=done"), "invalid_argument", /^state: /);
    await relay.refused(relay.get("/tasks?agent=missing"), "unknown_agent");
  });
});

describe("GET /tasks/{id}/tree", () => {
  it("shows the outcome of a task", async () => {
    await using relay = await openHttpRelay();
    const parent = (await relay.send({ type: "request" })).task_id;
    const child = (await relay.send({ from: ZHIWEI, to: LULU, type: "request", parent })).task_id;
    const { tree } = (await relay.get(`/tasks/${parent}/tree`)).json;
    assert.equal(tree.task.id, parent);
    assert.deepEqual(
      tree.children.map(({ task }) => task.id),
      [child],
    );
  });
});
