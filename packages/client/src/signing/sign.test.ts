import assert from "node:assert/strict";
import { createHmac, verify } from "node:crypto";
import { describe, it } from "node:test";
import { canonicalJson, fromBase58, keyProofText, type SignedMessage } from "@a2a-relay/protocol";
import { proveKey, signMessage } from "./sign.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const signing = { keyId: "key_1", secret: SECRET, nowMs: Date.parse("2026-05-08T08:30:00Z") };

function signatureOf(message: SignedMessage): string {
  const { signature: _, ...signed } = message;
  const key = Buffer.from(SECRET.slice(6), "base64");
  return `v1,${createHmac("sha256", key).update(canonicalJson(signed)).digest("base64")}`;
}

describe("signMessage", () => {
  it("gives the same signature for the same message, whatever the order of its members", async () => {
    const nonce = "n-1";
    const whole = { id: "m1", created_at: "2026-05-08T08:30:00Z", thread_id: "t1" };
    const own = { x: { b: 1, a: [] } };
    const turned = { x: { a: [], b: 1 } };
    const message = { to: "zhiwei", body: "知微你好" };
    const one = await signMessage({ ...whole, ...message, ...own }, { ...signing, nonce });
    const other = await signMessage({ ...turned, ...message, ...whole }, { ...signing, nonce });
    assert.equal(one.signature, other.signature);
    // Frozen: other implementations must produce the same signature.
    assert.equal(one.signature, "v1,zxYaaK4IwMhqms+pHN1dTR+VlOn5TjQ0ldyMf7kt3A8=");
    assert.equal(
      canonicalJson({ ...one, signature: undefined }),
      '{"body":"知微你好","created_at":"2026-05-08T08:30:00Z","id":"m1","key_id":"key_1","nonce":"n-1","signed_at":"2026-05-08T08:30:00.000Z","thread_id":"t1","to":"zhiwei","version":"a2a.v1","x":{"a":[],"b":1}}',
    );
  });

  it("fills in what has to be signed, and signs what will be on the wire", async () => {
    const own = { when: new Date(0), nothing: undefined };
    const message = await signMessage({ to: "b", body: "hi", signature: "old", ...own }, signing);
    assert.match(message.id ?? "", /^msg_[0-9a-f-]{36}$/);
    assert.match(message.thread_id ?? "", /^thread_[0-9a-f-]{36}$/);
    assert.match(message.nonce, /^[0-9a-f-]{36}$/);
    assert.equal(message.created_at, "2026-05-08T08:30:00.000Z");
    assert.equal(message.signed_at, "2026-05-08T08:30:00.000Z");
    assert.equal((message as Record<string, unknown>)["when"], "1970-01-01T00:00:00.000Z");
    assert.equal(message.signature, signatureOf(JSON.parse(JSON.stringify(message)) as SignedMessage));
  });

  it("uses another nonce each time", async () => {
    const message = { to: "b", body: "hi" };
    assert.notEqual((await signMessage(message, signing)).nonce, (await signMessage(message, signing)).nonce);
  });

  it("refuses an answer without its thread, and a malformed secret", async () => {
    await assert.rejects(signMessage({ to: "b", body: "hi", reply_to: "m0" }, signing), {
      code: "invalid_argument",
      message: /thread_id: is missing; a signed message about m0/,
    });
    await assert.rejects(signMessage({ to: "b", body: "hi" }, { ...signing, secret: "key_1.x" }), {
      code: "invalid_argument",
      message: /expected whsec_/,
    });
  });
});

describe("the proof that an agent holds its key", () => {
  it("is a signature over tenant, agent, key and time, made with WebCrypto alone", async () => {
    const pair = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const { pubkey_b58, key_proof } = await proveKey({
      agentId: "知微@studio",
      tenant: "工作室",
      publicKey,
      sign: (bytes) => crypto.subtle.sign("Ed25519", pair.privateKey, bytes),
      nowMs: Date.parse("2026-05-08T12:00:00Z"),
    });
    assert.deepEqual(fromBase58(pubkey_b58, 32), publicKey);
    assert.equal(key_proof.signed_at, "2026-05-08T12:00:00.000Z");
    const claim = { tenant: "工作室", agent_id: "知微@studio", pubkey_b58, signed_at: key_proof.signed_at };
    const text = keyProofText(claim);
    assert.equal(text, `a2a-relay.register.v1\n工作室\n知微@studio\n${pubkey_b58}\n2026-05-08T12:00:00.000Z`);
    const spki = await crypto.subtle.exportKey("spki", pair.publicKey);
    const key = { key: Buffer.from(spki), format: "der", type: "spki" } as const;
    const signature = fromBase58(key_proof.signature_b58, 64) ?? new Uint8Array();
    assert.ok(verify(null, Buffer.from(text), key, signature));
  });
});
