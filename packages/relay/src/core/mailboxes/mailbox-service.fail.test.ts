import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { gatedCore } from "../../../testing/gated-core.ts";
import { refused } from "../../../testing/refusal.ts";

/** Zhiwei has lulu's work in hand and may not answer it. */
async function setup() {
  const core = await gatedCore();
  await core.letAsk();
  const { receipt } = await core.ask();
  const { message_id, lease_id } = await core.lease();
  await core.checks();
  const giveUp = () => core.mailboxes.fail(core.zhiwei, ZHIWEI, { message_id, lease_id, reason: "不行" });
  return { core, giveUp, taskId: receipt.task_id ?? "" };
}

describe("giving up a message that asked for a task", () => {
  it("answers the task, and so needs the capability for that", async () => {
    const { core, giveUp, taskId } = await setup();
    await using _ = core;
    await refused(giveUp(), "permission_denied", /requires capability "a2a\.respond\./);
    assert.equal((await core.tasks.get(core.lulu, taskId)).state, "submitted");
    assert.deepEqual(await core.inboxOf(LULU), []);
    const { id } = await core.grant(ZHIWEI, `a2a.respond.${LULU}`, { scope: { max_uses: 1 } });
    await giveUp();
    assert.equal((await core.tasks.get(core.lulu, taskId)).state, "failed");
    assert.equal((await core.row(id)).used, 1);
    assert.deepEqual(
      (await core.checks()).map(({ data }) => [data["agent_id"], data["passed"]]),
      [
        [`a2a-respond:${taskId}`, false],
        [`a2a-respond:${taskId}`, true],
      ],
    );
  });

  it("needs none where the message is only a note", async () => {
    await using core = await gatedCore();
    await core.messages.send(core.lulu, { to: ZHIWEI, body: "看看" });
    const { message_id, lease_id } = await core.lease();
    await core.mailboxes.fail(core.zhiwei, ZHIWEI, { message_id, lease_id, reason: "看不懂" });
    assert.deepEqual(await core.checks(), []);
  });
});
