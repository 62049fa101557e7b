import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refused } from "../../../testing/refusal.ts";
import { ApiKeyAuthenticator, LocalTrust } from "./authenticator.ts";

describe("local trust", () => {
  it("takes every caller for the operator", async () => {
    const { kind, tenant } = await new LocalTrust().authenticate();
    assert.deepEqual([kind, tenant], ["operator", "default"]);
  });
});

describe("an API key", () => {
  const authenticator = new ApiKeyAuthenticator("0123456789abcdef");

  it("makes its holder the operator", async () => {
    assert.equal((await authenticator.authenticate("0123456789abcdef")).kind, "operator");
  });

  it("is asked for when it is missing", async () => {
    await refused(authenticator.authenticate(undefined), "unauthenticated", /Authorization: Bearer/);
  });

  for (const wrong of ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "知微"]) {
    it(`is not "${wrong}", and the refusal does not say why`, async () => {
      const error = await refused(authenticator.authenticate(wrong), "unauthenticated");
      assert.doesNotMatch(error.message, /0123/);
    });
  }
});
