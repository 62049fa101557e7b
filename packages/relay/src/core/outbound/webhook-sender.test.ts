import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { aNewPushEndpoint } from "../../../testing/store-builders.ts";
import { secretsOf } from "./webhook-sender.ts";

describe("a webhook after its secret was rotated", () => {
  it("is signed with the old secret too until its very last millisecond", () => {
    const endpoint = aNewPushEndpoint({ secret: "new", oldSecret: "old", oldSecretUntilMs: 1_000 });
    assert.deepEqual(secretsOf(endpoint, 999), ["new", "old"]);
    assert.deepEqual(secretsOf(endpoint, 1_000), ["new"]);
    assert.deepEqual(secretsOf({ ...endpoint, oldSecret: null, oldSecretUntilMs: null }, 0), ["new"]);
  });
});
