import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { leasedRequest, openCliRelay } from "../../../../testing/cli-relay.ts";

describe("status", () => {
  it("shows totals and who holds what", async () => {
    await using relay = await openCliRelay();
    const item = await leasedRequest(relay);
    const stdout = await relay.ok(["status", "--state", "leased"]);
    assert.match(stdout, /leased 1/);
    assert.match(stdout, new RegExp(`${item.message_id} +leased .* w-1 +${item.lease.id} .*你好`));
    const old = await relay.json(["status", "--state", "leased", "--min-lease-age-ms", "3600000"]);
    assert.deepEqual(old["entries"], []);
  });
});
