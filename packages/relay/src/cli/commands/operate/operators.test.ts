import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LeaseResponse } from "@a2a-relay/protocol";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

async function leased(relay: CliRelay, key?: string): Promise<LeaseResponse["messages"][number]> {
  await relay.client.send({
    from: LULU,
    to: ZHIWEI,
    type: "request",
    subject: "你好",
    body: "x",
    ...(key === undefined ? {} : { idempotency: { duplicate_safety: "idempotent", key } }),
  });
  const [item] = (await relay.client.lease(ZHIWEI, { worker: "w-1" })).messages;
  assert.ok(item !== undefined);
  return item;
}

describe("status", () => {
  it("shows totals and who holds what", async () => {
    await using relay = await openCliRelay();
    const item = await leased(relay);
    const stdout = await relay.ok(["status", "--state", "leased"]);
    assert.match(stdout, /leased 1/);
    assert.match(stdout, new RegExp(`${item.message_id} +leased .* w-1 +${item.lease.id} .*你好`));
    const old = await relay.json(["status", "--state", "leased", "--min-lease-age-ms", "3600000"]);
    assert.deepEqual(old["entries"], []);
  });
});

describe("requeue", () => {
  it("frees a message by its id or its task's id", async () => {
    await using relay = await openCliRelay();
    const flags = ["--reason", "worker crashed", "--duplicate-risk", "operator-accepted"];
    const first = await leased(relay);
    assert.match(
      await relay.ok(["requeue", first.message_id, ...flags]),
      /^requeued msg_\S+: available, attempt 1\n$/,
    );
    const [again] = (await relay.client.lease(ZHIWEI)).messages;
    const answer = await relay.json(["requeue", again?.task_id ?? "", ...flags]);
    assert.equal(answer["message_id"], first.message_id);
  });

  it("leaves stdout empty when the lease has moved on", async () => {
    await using relay = await openCliRelay();
    const item = await leased(relay);
    const argv = [
      "requeue",
      item.message_id,
      "--reason",
      "r",
      "--duplicate-risk",
      "idempotent",
      "--lease-id",
      "other",
    ];
    const { code, stdout, stderr } = await relay.run(argv);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^error: /);
  });
});

describe("force-error", () => {
  it("ends the mail and tells its sender", async () => {
    await using relay = await openCliRelay();
    const item = await leased(relay);
    const flags = ["--reason", "gone", "--message", "please ask again", "--lease-id", item.lease.id];
    assert.match(await relay.ok(["force-error", item.message_id, ...flags]), /^forced_error msg_/);
    const { messages } = await relay.client.readMailbox(LULU);
    assert.match(messages[0]?.message.body ?? "", /please ask again/);
  });

  it("leaves stdout empty for mail that does not exist", async () => {
    await using relay = await openCliRelay();
    const { code, stdout } = await relay.run(["force-error", "nothing", "--reason", "r", "--message", "m"]);
    assert.deepEqual([code, stdout], [1, ""]);
  });
});

describe("retry-stale", () => {
  it("only looks unless it is enabled", async () => {
    await using relay = await openCliRelay();
    await leased(relay, "k-1");
    const flags = ["retry-stale", "--min-lease-age-ms", "0"];
    assert.match(
      await relay.ok(flags),
      /requeued 0, skipped 1\nnothing was changed; pass --enable to requeue\n/,
    );
    assert.match(
      await relay.ok([...flags, "--enable"]),
      /^considered 1, requeued 1, skipped 0\nrequeued msg_\S+, attempt 1\n$/,
    );
  });
});

describe("events", () => {
  it("shows a page and how to go on", async () => {
    await using relay = await openCliRelay();
    const { stdout, stderr } = await relay.run(["events", "--limit", "1"]);
    assert.match(stdout, /^SEQ +TIME +EVENT.*\n1 +20\S+Z +agent\.registered .*\n$/);
    assert.match(stderr, /there are more: --since 1/);
    const page = await relay.json(["events", "--since", "1"]);
    assert.equal((page["events"] as readonly unknown[]).length, 3);
  });

  it("says what was refused, and which key was made", async () => {
    await using relay = await openCliRelay();
    const { key, key_id } = await relay.client.createKey({ agent_id: ZHIWEI });
    const denied = await relay.run(["inbox", "--agent", LULU, "--api-key", key]);
    assert.equal(denied.code, 1);
    assert.match(await relay.ok(["events", "--type", "access.denied"]), /WHAT\n.*mailbox\.read\n$/);
    assert.ok((await relay.ok(["events", "--type", "key.created"])).includes(key_id));
  });

  it("follows the journal as lines of JSON", async () => {
    await using relay = await openCliRelay();
    const ending = new AbortController();
    let sent = false;
    const { code, stdout } = await relay.run(["events", "--follow", "--since", "2", "--json"], {
      signal: ending.signal,
      onStdout: (text) => {
        if (text.includes("message.accepted")) ending.abort();
        else if (!sent) void relay.client.send({ from: LULU, to: ZHIWEI, body: "x" });
        sent = true;
      },
    });
    assert.equal(code, 130);
    const types = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    assert.deepEqual(types, ["agent.registered", "key.created", "message.accepted"]);
  });
});

describe("task", () => {
  it("shows, works on and finishes tasks", async () => {
    await using relay = await openCliRelay();
    const item = await leased(relay);
    const id = item.task_id ?? "";
    const lease = ["--lease-id", item.lease.id];
    assert.match(await relay.ok(["task", "list", "--state", "submitted"]), new RegExp(`${id} +submitted`));
    assert.match(await relay.ok(["task", "working", id, "--text", "一半", ...lease]), /working/);
    assert.match(
      await relay.ok(["task", "tree", id]),
      new RegExp(`^${id} {2}working {2}zhiwei@known-blocks1 {2}你好\n$`),
    );
    await relay.ok(["task", "complete", id, "--text", "-", "--partial", ...lease], { stdin: "完成\n" });
    const shown = await relay.json(["task", "show", id]);
    assert.deepEqual([shown["state"], shown["result_status"]], ["completed", "partial"]);
    const { messages } = await relay.client.readMailbox(LULU);
    assert.equal(messages.at(-1)?.message.body, "完成");
  });

  for (const [verb, state] of [
    ["fail", "failed"],
    ["reject", "rejected"],
    ["cancel", "canceled"],
  ] as const) {
    it(`${verb} makes a task ${state}`, async () => {
      await using relay = await openCliRelay();
      const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, type: "request", body: "x" });
      const answer = await relay.json(["task", verb, receipt.task_id ?? "", "--reason", "because"]);
      assert.equal(answer["state"], state);
    });
  }
});
