import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

const REQUEUE = { action: "requeue", duplicate_risk: "operator_accepted" };
const FORCE = { action: "force_error", message: "worker is lost" };

describe("a lease that an operator ended", () => {
  for (const command of [REQUEUE, FORCE]) {
    it(`finishes nothing after ${command.action}`, async () => {
      await using core = await coreOnMemory();
      const { receipt } = await core.send({ type: "request" });
      const task_id = receipt.task_id ?? "";
      const { message_id, lease_id } = await core.lease();
      await core.repairs.repair(core.operator, { message_id, reason: "进程没了", command });
      const lease = { message_id, lease_id };
      const ack = await core.mailboxes.ack(core.zhiwei, ZHIWEI, { leases: [lease] });
      const renewed = await core.mailboxes.renew(core.zhiwei, ZHIWEI, { ...lease, lease_ms: 1_000 });
      for (const { results } of [ack, renewed]) {
        assert.equal(results[0]?.ok === false && results[0].error.code, "lease_lost");
      }
      await refused(core.mailboxes.fail(core.zhiwei, ZHIWEI, { ...lease, reason: "x" }), "lease_lost");
      await refused(core.tasks.complete(core.zhiwei, task_id, { lease_id }), "lease_lost");
      await refused(core.tasks.fail(core.zhiwei, task_id, { lease_id, reason: "x" }), "lease_lost");
      const reply = {
        from: ZHIWEI,
        to: LULU,
        type: "reply",
        reply_to: message_id,
        lease_id,
        body: "好",
      } as const;
      await refused(core.send(reply), "lease_lost");
    });
  }
});
