import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { verifyWebhook, type WebhookVerification } from "./verify-webhook.ts";

/** The example that Standard Webhooks gives for its implementations. */
const EXAMPLE = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  body: '{"test": 2432232314}',
  headers: {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  },
  nowMs: 1_614_265_330_000,
};
const { "webhook-signature": SIGNATURE } = EXAMPLE.headers;
const MINUTE_MS = 60_000;

function verify(
  changes: Partial<WebhookVerification> & { readonly signature?: string } = {},
): Promise<unknown> {
  const { signature = SIGNATURE, ...rest } = changes;
  return verifyWebhook({
    ...EXAMPLE,
    headers: { ...EXAMPLE.headers, "webhook-signature": signature },
    ...rest,
  });
}

function newSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

describe("verifyWebhook", () => {
  it("takes the example of Standard Webhooks, in each form that headers and body come in", async () => {
    const expected = { test: 2_432_232_314 };
    assert.deepEqual(await verify(), expected);
    assert.deepEqual(await verify({ headers: new Headers(EXAMPLE.headers) }), expected);
    const upper = Object.entries(EXAMPLE.headers).map(([name, value]) => [name.toUpperCase(), [value]]);
    assert.deepEqual(
      await verify({ headers: Object.fromEntries(upper) as Record<string, string[]> }),
      expected,
    );
    assert.deepEqual(await verify({ body: Buffer.from(EXAMPLE.body) }), expected);
    const { buffer } = new TextEncoder().encode(EXAMPLE.body);
    assert.deepEqual(await verify({ body: buffer }), expected);
  });

  it("takes a push of the relay, Chinese and all", async () => {
    const secret = newSecret();
    const payload = {
      type: "message.available",
      timestamp: "2026-05-08T08:30:00.000Z",
      data: { body: "知微你好" },
    };
    const body = JSON.stringify(payload);
    const hmac = createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(
      `msg_知.1614265330.${body}`,
    );
    const headers = {
      "webhook-id": "msg_知",
      "webhook-timestamp": "1614265330",
      "webhook-signature": `v1,${hmac.digest("base64")}`,
    };
    assert.deepEqual(await verifyWebhook({ headers, body, secret, nowMs: EXAMPLE.nowMs }), payload);
  });

  it("takes any of several signatures by any of several secrets, while one replaces the other", async () => {
    const { secret } = EXAMPLE;
    const other = `v1,${randomBytes(32).toString("base64")}`;
    await verify({ signature: `${other} ${SIGNATURE}` });
    await verify({ signature: `v1a,xyz ${SIGNATURE} ${other}` });
    await verify({ secret: undefined, secrets: [newSecret(), secret] });
    await verify({ secret: newSecret(), secrets: [secret] });
    await assert.rejects(verify({ secret: undefined, secrets: [newSecret(), newSecret()] }), {
      code: "permission_denied",
    });
  });

  it("refuses what was changed, wherever", async () => {
    const wrong = { code: "permission_denied", message: /none of its signatures is right/ };
    await assert.rejects(verify({ body: '{"test": 2432232315}' }), wrong);
    await assert.rejects(verify({ body: `${EXAMPLE.body} ` }), wrong);
    await assert.rejects(verify({ secret: newSecret() }), wrong);
    await assert.rejects(verify({ signature: "v1,AAAA" }), wrong);
    const { headers } = EXAMPLE;
    await assert.rejects(verify({ headers: { ...headers, "webhook-id": "msg_other" } }), wrong);
    await assert.rejects(verify({ headers: { ...headers, "webhook-timestamp": "1614265331" } }), wrong);
  });

  it("refuses what is too old or too far ahead, and says how far", async () => {
    const { nowMs } = EXAMPLE;
    await verify({ nowMs: nowMs + 5 * MINUTE_MS });
    await verify({ nowMs: nowMs - 5 * MINUTE_MS });
    await verify({ nowMs: nowMs + 60 * MINUTE_MS, toleranceMs: 60 * MINUTE_MS });
    for (const far of [nowMs + 5 * MINUTE_MS + 1, nowMs - 5 * MINUTE_MS - 1]) {
      await assert.rejects(verify({ nowMs: far }), {
        code: "permission_denied",
        message:
          /2021-02-25T15:02:10\.000Z is more than 300 seconds from 2021-02-25T1.*, the time here; it may be a recording/,
      });
    }
    await assert.rejects(verify({ nowMs: undefined }), { code: "permission_denied" });
  });

  it("says what is missing or malformed, and never repeats the secret", async () => {
    const { headers } = EXAMPLE;
    const cases: readonly [Parameters<typeof verify>[0], RegExp][] = [
      [{ headers: {} }, /webhook-id: this header is missing/],
      [{ headers: { ...headers, "webhook-timestamp": "" } }, /webhook-timestamp: this header is missing/],
      [{ headers: { ...headers, "Webhook-Id": "another" } }, /webhook-id/],
      [{ signature: "v2,abc" }, /expected v1,<base64>, got "v2,abc"/],
      [{ signature: "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" }, /expected v1,<base64>/],
      [{ signature: `${SIGNATURE} `.repeat(11) }, /holds 11 signatures/],
      [{ secret: undefined }, /secret: is missing/],
      [{ secret: "hunter2" }, /expected whsec_ followed by base64/],
      [{ secret: "whsec_hunter2\n" }, /not base64; was it cut off, or is there a line break/],
      [{ secret: "whsec_" }, /not base64/],
    ];
    for (const [changes, message] of cases) {
      await assert.rejects(verify(changes), (error: Error & { readonly code?: string }) => {
        assert.equal(error.code, "invalid_argument");
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      });
    }
  });

  it("refuses a body that is well signed and no JSON object", async () => {
    const secret = newSecret();
    const key = Buffer.from(secret.slice(6), "base64");
    for (const body of ["hello", "null", '"text"']) {
      const signature = createHmac("sha256", key).update(`a.1614265330.${body}`).digest("base64");
      const headers = {
        "webhook-id": "a",
        "webhook-timestamp": "1614265330",
        "webhook-signature": `v1,${signature}`,
      };
      await assert.rejects(verify({ headers, body, secret }), {
        code: "invalid_argument",
        message: /^body: /,
      });
    }
  });
});
