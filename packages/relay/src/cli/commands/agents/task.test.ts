import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { leasedRequest, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

describe("task", () => {
  it("shows, works on and finishes tasks", async () => {
    await using relay = await openCliRelay();
    const item = await leasedRequest(relay);
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
