import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../ports/access.ts";
import { CAPABILITY_DOMAIN, mint, SignatureCheck, signedText } from "./capability-token.ts";
import { newKeyPair, signingKey } from "../rules/ed25519.ts";

const identity = signingKey(newKeyPair().privateKey);

const SCOPE = { max_uses: 3, task_id: "任务", note: "只此一次" };

const DRAFT: Omit<CapabilityRecord, "signature"> = {
  tenant: "default",
  id: "cap_1",
  nonce: "n1",
  subject: "lulu@kamac" as AgentId,
  subjectKey: newKeyPair().publicKey,
  action: `a2a.send.${newKeyPair().publicKey}`,
  writtenAction: "a2a.send.知微",
  scope: SCOPE,
  grantedBy: "operator",
  parentId: null,
  issuedAtMs: 1_000,
  expiresAtMs: 2_000,
  revokedAtMs: null,
  used: 0,
  version: 0,
};

describe("the signed text", () => {
  it("is one line of JSON that begins with the domain", () => {
    const [domain, ...claims] = JSON.parse(signedText(DRAFT)) as readonly unknown[];
    assert.equal(domain, CAPABILITY_DOMAIN);
    assert.deepEqual(claims, [
      "default",
      "cap_1",
      "n1",
      DRAFT.subjectKey,
      DRAFT.action,
      DRAFT.scope,
      "operator",
      null,
      1_000,
      2_000,
    ]);
  });

  it("does not depend on the order of the scope, and differs for any other change", () => {
    const { max_uses, task_id, note } = SCOPE;
    const scope = { note, task_id, max_uses };
    assert.equal(signedText({ ...DRAFT, scope }), signedText(DRAFT));
    // What one claim loses, the next one gains: the texts must still differ.
    const [a, b] = [
      { ...DRAFT, id: 'cap_1","n', nonce: "1" },
      { ...DRAFT, id: "cap_1", nonce: 'n","1' },
    ];
    assert.notEqual(signedText(a), signedText(b));
  });
});

describe("a minted capability", () => {
  it("is genuine for the relay that minted it, also when it is used or revoked", () => {
    const check = new SignatureCheck(identity.publicKey);
    const capability = mint(DRAFT, identity);
    assert.ok(check.isGenuine(capability));
    assert.ok(check.isGenuine(capability));
    assert.ok(check.isGenuine({ ...capability, used: 2, revokedAtMs: 5, version: 7 }));
  });

  const changes: Readonly<Record<string, Partial<CapabilityRecord>>> = {
    "another tenant": { tenant: "acme" },
    "another id": { id: "cap_2" },
    "another nonce": { nonce: "n2" },
    "another subject": { subjectKey: newKeyPair().publicKey },
    "another action": { action: "a2a.compact" },
    "more uses": { scope: { ...DRAFT.scope, max_uses: 4 } },
    "no scope": { scope: {} },
    "an unknown member less": { scope: { max_uses: 3, task_id: "任务" } },
    "another granter": { grantedBy: "lulu@kamac" },
    "a parent": { parentId: "cap_0" },
    "another time of issue": { issuedAtMs: 1_001 },
    "a later end": { expiresAtMs: 2_001 },
    "no end": { expiresAtMs: null },
    "another signature": { signature: identity.sign("something else") },
    "no signature": { signature: "" },
    "half a signature": { signature: "3yZe7d" },
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`is not genuine with ${what}, also after the genuine one was seen`, () => {
      const check = new SignatureCheck(identity.publicKey);
      const capability = mint(DRAFT, identity);
      assert.ok(check.isGenuine(capability));
      for (let again = 0; again < 2; again += 1) {
        assert.equal(check.isGenuine({ ...capability, ...change }), false);
      }
      assert.ok(check.isGenuine({ ...capability }));
    });
  }

  it("is not genuine for another relay, nor with a signature made under another domain", () => {
    const capability = mint(DRAFT, identity);
    assert.equal(new SignatureCheck(newKeyPair().publicKey).isGenuine(capability), false);
    const foreign = identity.sign(signedText(DRAFT).replace(CAPABILITY_DOMAIN, "a2a-relay.register.v1"));
    const check = new SignatureCheck(identity.publicKey);
    assert.equal(check.isGenuine({ ...capability, signature: foreign }), false);
    assert.equal(check.isGenuine({ ...capability, scope: null as never }), false);
  });
});
