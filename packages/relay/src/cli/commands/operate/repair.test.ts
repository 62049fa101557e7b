import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { leasedRequest, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

describe("requeue", () => {
  it("frees a message by its id or its task's id", async () => {
    await using relay = await openCliRelay();
    const flags = ["--reason", "worker crashed", "--duplicate-risk", "operator-accepted"];
    const first = await leasedRequest(relay);
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
    const item = await leasedRequest(relay);
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
  it("ends the message and tells its sender", async () => {
    await using relay = await openCliRelay();
    const item = await leasedRequest(relay);
    const flags = ["--reason", "gone", "--message", "please ask again", "--lease-id", item.lease.id];
    assert.match(await relay.ok(["force-error", item.message_id, ...flags]), /^forced_error msg_/);
    const { messages } = await relay.client.readMailbox(LULU);
    assert.match(messages[0]?.message.body ?? "", /please ask again/);
  });

  it("leaves stdout empty for a message that does not exist", async () => {
    await using relay = await openCliRelay();
    const { code, stdout } = await relay.run(["force-error", "nothing", "--reason", "r", "--message", "m"]);
    assert.deepEqual([code, stdout], [1, ""]);
  });
});

describe("retry-stale", () => {
  it("changes nothing unless it is enabled", async () => {
    await using relay = await openCliRelay();
    await leasedRequest(relay, "k-1");
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
