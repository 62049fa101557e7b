import assert from "node:assert/strict";
import { verify } from "node:crypto";
import { describe, it } from "node:test";
import { fromBase58, keyProofText } from "@a2a-relay/protocol";
import { proveKey } from "./key-proof.ts";

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
