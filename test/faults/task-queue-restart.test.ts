import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type QueueTaskInput, RelayClient } from "@a2a-relay/client";
import { startChildRelay } from "../support/child-relay.ts";

const LULU = "lulu@kamac";
const ZHIWEI = "zhiwei@known-blocks1";

/** Data that outlives the processes that work on it. */
class Data implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<Data> {
    return new Data(await mkdtemp(join(tmpdir(), "task-queue-restart-")));
  }

  /** Does something with a relay that is then killed without a word of warning. */
  async until9<Answer>(act: (client: RelayClient) => Promise<Answer>): Promise<Answer> {
    await using relay = await startChildRelay({ dataDirectory: join(this.path, "data") });
    const answer = await act(new RelayClient({ url: relay.url }));
    await relay.kill("SIGKILL");
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

function aTask(said: Partial<QueueTaskInput> = {}): QueueTaskInput {
  return { id: randomUUID(), sender: LULU, recipient: ZHIWEI, intent_text: "翻译", ...said };
}

async function register(client: RelayClient): Promise<void> {
  await client.register({ agent_id: LULU });
  await client.register({ agent_id: ZHIWEI });
}

describe("the task queue after kill -9", () => {
  it("is as it was: queued, leased and not handed out again, pending, and drained for good", async () => {
    await using data = await Data.create();
    const idempotency = { duplicate_safety: "idempotent", key: "k-1" } as const;
    const kept = { task_kind: "release.notes", deadline_ms: Date.now() + 3_600_000, idempotency };
    const [drained, pending, leased, queued] = [aTask(), aTask(), aTask(kept), aTask(kept)];
    const before = await data.until9(async (client) => {
      await register(client);
      const { taskQueue } = client;
      for (const task of [drained, pending, leased]) await taskQueue.send(task);
      for (const task of [drained, pending]) {
        await taskQueue.next({ agent: ZHIWEI });
        await taskQueue.respond({ task_id: task.id, status: "ok", content: [{ type: "text", text: "好" }] });
      }
      await taskQueue.nextResult({ agent: LULU, ack: "now" });
      await taskQueue.next({ agent: ZHIWEI });
      await taskQueue.send({ ...queued, idempotency: { ...idempotency, key: "k-2" } });
      return taskQueue.queue();
    });
    await data.until9(async ({ taskQueue }) => {
      assert.deepEqual(await taskQueue.queue(), before);
      assert.deepEqual(
        before.tasks.map(({ state, task }) => [state, task.id, task.task_kind, task.deadline_ms]),
        [
          ["queued", queued.id, kept.task_kind, kept.deadline_ms],
          ["in_flight", leased.id, kept.task_kind, kept.deadline_ms],
        ],
      );
      assert.deepEqual(
        before.results.map(({ task_id }) => task_id),
        [pending.id],
      );
      const hour = { min_lease_age_ms: 3_600_000, deadline_within_ms: 7_200_000 };
      assert.deepEqual(
        (await taskQueue.queue(hour)).tasks.map(({ task }) => task.id),
        [queued.id],
      );
      assert.equal((await taskQueue.next({ agent: ZHIWEI })).task?.id, queued.id);
      assert.equal((await taskQueue.next({ agent: ZHIWEI })).task, null);
      // The worker that had it can still answer it, and its sender is still known.
      await taskQueue.respond({ task_id: leased.id, status: "ok" }, { agent: ZHIWEI });
      const first = await taskQueue.nextResult({ agent: LULU, ack: "now" });
      const second = await taskQueue.nextResult({ agent: LULU, ack: "now" });
      assert.deepEqual([first.result?.task_id, second.result?.task_id], [pending.id, leased.id]);
    });
    await data.until9(async ({ taskQueue }) => {
      assert.equal((await taskQueue.nextResult({ agent: LULU, ack: "now" })).result, null);
    });
  });

  it("goes on counting attempts, and keeps repairs", async () => {
    await using data = await Data.create();
    const [again, ended] = [aTask(), aTask()];
    const command = { action: "requeue", duplicate_risk: "operator_accepted" } as const;
    await data.until9(async (client) => {
      await register(client);
      for (const task of [again, ended]) await client.taskQueue.send(task);
      assert.equal((await client.taskQueue.next({ agent: ZHIWEI })).lease?.attempt, 1);
    });
    await data.until9(async ({ taskQueue }) => {
      await taskQueue.repair({ task_id: again.id, reason: "killed", command });
    });
    await data.until9(async ({ taskQueue }) => {
      assert.equal((await taskQueue.next({ agent: ZHIWEI })).task?.id, ended.id);
      const { task, lease } = await taskQueue.next({ agent: ZHIWEI });
      assert.deepEqual([task?.id, lease?.attempt], [again.id, 2]);
      const force = { action: "force_error", message: "请周一再问" } as const;
      await taskQueue.repair({ task_id: ended.id, reason: "killed", command: force });
    });
    await data.until9(async ({ taskQueue }) => {
      const { tasks } = await taskQueue.queue();
      assert.deepEqual(
        tasks.map(({ task, attempt }) => [task.id, attempt]),
        [[again.id, 2]],
      );
      const { result } = await taskQueue.nextResult({ agent: LULU, ack: "now" });
      assert.deepEqual([result?.task_id, result?.error_message], [ended.id, "请周一再问"]);
    });
  });

  it("still knows earlier results, and answers a caller that waits for the same", async () => {
    await using data = await Data.create();
    const idempotency = { duplicate_safety: "idempotent", key: "k-1" } as const;
    const [first, second, third] = [aTask({ idempotency }), aTask({ idempotency }), aTask({ idempotency })];
    await data.until9(async (client) => {
      await register(client);
      for (const task of [first, second]) await client.taskQueue.send(task);
      await client.taskQueue.next({ agent: ZHIWEI });
    });
    await data.until9(async ({ taskQueue }) => {
      await taskQueue.respond({ task_id: first.id, status: "ok", content: [{ type: "text", text: "好" }] });
    });
    await data.until9(async ({ taskQueue }) => {
      await taskQueue.send(third);
      const ids: string[] = [];
      for (const _ of [1, 2, 3]) {
        const { result } = await taskQueue.nextResult({ agent: LULU, ack: "now", wait_ms: 10_000 });
        assert.deepEqual(result?.content, [{ type: "text", text: "好" }]);
        ids.push(result?.task_id ?? "");
      }
      assert.deepEqual(ids.toSorted(), [first.id, second.id, third.id].toSorted());
      assert.equal((await taskQueue.next({ agent: ZHIWEI })).task, null);
    });
  });
});
