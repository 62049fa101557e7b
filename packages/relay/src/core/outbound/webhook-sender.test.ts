import assert from "node:assert/strict";
import { randomFillSync } from "node:crypto";
import { describe, it } from "node:test";
import { aNewPushEndpoint } from "../../../testing/store-builders.ts";
import { newSigningSecret } from "../keys/key-maker.ts";
import { secretsOf, webhookHeaders } from "./webhook-sender.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

describe("signing by Standard Webhooks", () => {
  it("gives the signature of the specification's example", () => {
    const message = { messageId: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}' };
    assert.deepEqual(webhookHeaders(message, [SECRET], 1_614_265_330_999), {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("signs with each secret, separated by a blank", () => {
    const message = { messageId: "m1", body: "{}" };
    const one = webhookHeaders(message, [SECRET], 0)["webhook-signature"];
    const both = webhookHeaders(message, ["whsec_AAAA", SECRET], 0)["webhook-signature"] ?? "";
    assert.equal(both.split(" ").length, 2);
    assert.equal(both.split(" ")[1], one);
  });

  it("makes new secrets of 32 random bytes", () => {
    const fill = (bytes: Uint8Array): void => void randomFillSync(bytes);
    const secret = newSigningSecret(fill);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.notEqual(secret, newSigningSecret(fill));
  });

  for (const [id, expected] of [
    ["msg_1", "msg_1"],
    ["a.b:c@d", "a.b:c@d"],
    ["知微 1", "%E7%9F%A5%E5%BE%AE%201"],
    ["100%", "100%25"],
    ["🦊", "%F0%9F%A6%8A"],
  ] as const) {
    it(`writes the id ${id} so that a header can carry it and no other id is written alike`, () => {
      assert.equal(webhookHeaders({ messageId: id, body: "" }, [SECRET], 0)["webhook-id"], expected);
    });
  }

  it("signs with the old secret until its very last millisecond", () => {
    const endpoint = aNewPushEndpoint({ secret: "new", oldSecret: "old", oldSecretUntilMs: 1_000 });
    assert.deepEqual(secretsOf(endpoint, 999), ["new", "old"]);
    assert.deepEqual(secretsOf(endpoint, 1_000), ["new"]);
    assert.deepEqual(secretsOf({ ...endpoint, oldSecret: null, oldSecretUntilMs: null }, 0), ["new"]);
  });
});
