import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

async function queued(relay: CliRelay, said: object = {}): Promise<string> {
  const task = { id: randomUUID(), sender: LULU, recipient: ZHIWEI, intent_text: "翻译", ...said };
  return (await relay.client.taskQueue.send(task)).task_id;
}

/** A task in flight, and the lease it is under. */
async function leased(relay: CliRelay, said: object = {}): Promise<readonly [id: string, leaseId: string]> {
  const id = await queued(relay, said);
  const { lease } = await relay.client.taskQueue.next({ agent: ZHIWEI });
  return [id, lease?.lease_id ?? ""];
}

const KEYS = ["kind", "limit", "min_lease_age_ms", "deadline_within_ms", "state_filter", "tasks", "results"];

describe("a2a status", () => {
  it("prints a line of JSON for each task and result, or that there is nothing", async () => {
    await using relay = await openCliRelay();
    assert.equal(await relay.ok(["a2a", "status"]), "(a2a queue empty)\n");
    const [done] = await leased(relay);
    await relay.client.taskQueue.respond({ task_id: done, status: "ok" }, { agent: ZHIWEI });
    const [held] = await leased(relay);
    const waiting = await queued(relay);
    const { stdout, stderr } = await relay.run(["a2a", "status"]);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map(
        (text) =>
          JSON.parse(text) as Record<string, { state: string; task: { id: string }; task_id: string }>,
      );
    assert.deepEqual(
      rows.map(({ type, entry, result }) => [type, entry?.state, entry?.task.id ?? result?.task_id]),
      [
        ["task", "queued", waiting],
        ["task", "in_flight", held],
        ["result", undefined, done],
      ],
    );
    assert.equal(stderr, "");
  });

  it("is with --json one object with seven members, null where nothing was asked", async () => {
    await using relay = await openCliRelay();
    const empty = await relay.json(["a2a", "status"]);
    assert.deepEqual(Object.keys(empty), KEYS);
    assert.deepEqual(Object.values(empty), ["a2a_status", 10, null, null, null, [], []]);
    const flags = ["--min-lease-age-ms", "5", "--deadline-within-ms", "6", "-n", "7", "--state", "in-flight"];
    const asked = await relay.json(["a2a", "status", ...flags]);
    assert.deepEqual(Object.values(asked), ["a2a_status", 7, 5, 6, "in_flight", [], []]);
  });

  it("narrows to one state, and knows the names of both", async () => {
    await using relay = await openCliRelay();
    await leased(relay);
    await queued(relay);
    const count = async (state: string): Promise<number> =>
      (await relay.ok(["a2a", "status", "--state", state])).trimEnd().split("\n").length;
    assert.deepEqual([await count("queued"), await count("in_flight"), await count("in-flight")], [1, 1, 1]);
    for (const typo of ["Queued", "IN_FLIGHT", "leased"]) {
      // No relay listens there, and none is called.
      const env = { A2A_RELAY_URL: "http://127.0.0.1:9" };
      const { code, stdout, stderr } = await relay.run(["a2a", "status", "--state", typo], { env });
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /unknown a2a state/);
    }
  });
});

describe("a2a requeue", () => {
  it("prints what was done as one line of JSON, and nothing else", async () => {
    await using relay = await openCliRelay();
    for (const json of [[], ["--json"]]) {
      const [id, leaseId] = await leased(relay);
      const flags = ["--reason", "crashed", "--duplicate-risk", "operator-accepted", "--lease-id", leaseId];
      const { code, stdout, stderr } = await relay.run(["a2a", "requeue", id, ...flags, ...json]);
      const outcome = { task_id: id, action: "requeued", state: "queued", attempt: 1 };
      assert.deepEqual([code, stdout, stderr], [0, `${JSON.stringify(outcome)}\n`, ""]);
      await relay.client.taskQueue.next({ agent: ZHIWEI });
    }
  });

  it("says on stderr alone what does not fit: the task, the lease expected and the one there is", async () => {
    await using relay = await openCliRelay();
    const [id, leaseId] = await leased(relay);
    const flags = ["--reason", "r", "--duplicate-risk", "idempotent"];
    const { code, stdout, stderr } = await relay.run(["a2a", "requeue", id, ...flags, "--lease-id", "other"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, new RegExp(`lease mismatch for task ${id}: expected other, actual ${leaseId}`));
    const blank = await relay.run(["a2a", "requeue", id, "--reason", " ", "--duplicate-risk", "idempotent"]);
    assert.deepEqual([blank.code, blank.stdout], [1, ""]);
    assert.match(blank.stderr, /invalid repair request: reason must not be empty/);
    const posture = await relay.run(["a2a", "requeue", id, "--reason", "r", "--duplicate-risk", "maybe"]);
    assert.deepEqual([posture.code, posture.stdout], [2, ""]);
  });
});

describe("a2a force-error", () => {
  it("ends the task with an error that its sender can take", async () => {
    await using relay = await openCliRelay();
    const [id] = await leased(relay);
    const stdout = await relay.ok(["a2a", "force-error", id, "--reason", "gone", "--message", "请周一再问"]);
    const result = { task_id: id, status: "error", content: [], error_message: "请周一再问" };
    const outcome = { task_id: id, action: "forced_error", state: "result_pending", attempt: 1, result };
    assert.deepEqual(JSON.parse(stdout), outcome);
    assert.deepEqual((await relay.client.taskQueue.nextResult({ agent: LULU })).result, result);
    const again = await relay.run(["a2a", "force-error", id, "--reason", "gone", "--message", "x"]);
    assert.deepEqual([again.code, again.stdout], [1, ""]);
    assert.match(again.stderr, /is not currently in flight/);
  });
});

describe("a2a retry-stale", () => {
  it("changes nothing unless it is enabled", async () => {
    await using relay = await openCliRelay();
    const idempotency = { duplicate_safety: "idempotent", key: "k" };
    const [id] = await leased(relay, { idempotency });
    const flags = ["a2a", "retry-stale", "--min-lease-age-ms", "0"];
    assert.equal(
      await relay.ok(flags),
      "considered 1 task(s), requeued 0, skipped 1\nautomatic retry disabled; pass --enable to mutate\n",
    );
    const answer = await relay.json([
      ...flags,
      "--max-attempts",
      "2",
      "--max-requeues",
      "3",
      "--scan-limit",
      "4",
    ]);
    assert.deepEqual(Object.keys(answer), ["kind", "report"]);
    const report = answer["report"] as { readonly policy: object; readonly skipped: readonly object[] };
    assert.equal(answer["kind"], "a2a_auto_retry");
    assert.deepEqual(report.policy, {
      enabled: false,
      min_lease_age_ms: 0,
      max_attempts: 2,
      max_requeues: 3,
      scan_limit: 4,
    });
    assert.equal(await relay.ok([...flags, "--enable"]), "considered 1 task(s), requeued 1, skipped 0\n");
    assert.equal((await relay.client.taskQueue.next({ agent: ZHIWEI })).task?.id, id);
  });
});

describe("a2a compact", () => {
  it("says how much it dropped", async () => {
    await using relay = await openCliRelay();
    const [id] = await leased(relay);
    await relay.client.taskQueue.respond({ task_id: id, status: "ok" }, { agent: ZHIWEI });
    await relay.client.taskQueue.nextResult({ agent: LULU, ack: "now" });
    assert.equal(await relay.ok(["a2a", "compact"]), "dropped 2 a2a event(s)\n");
    assert.deepEqual(await relay.json(["a2a", "compact"]), { kind: "a2a_compacted", dropped: 0 });
  });
});
