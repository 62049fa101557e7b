import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import { toBase58, type Verb } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, DAY_MS, LULU } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { newKey, PLAIN, signed } from "../../../testing/signed-message.ts";
import { KeyAuthenticator } from "../access/authenticator.ts";
import { operatorOf, rootOperator } from "../access/principal.ts";
import { readSigningSecret } from "./key-maker.ts";

const ROOT = rootOperator();
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

async function dataOfEvents(core: CoreOnMemory, type: string) {
  const { events } = await core.journal.events(core.operator, { type, limit: 500 });
  return events.map(({ data }) => data);
}

describe("a signing key", () => {
  it("is a secret of 32 random bytes that the relay returns once", async () => {
    await using core = await coreOnMemory();
    const made = await newKey(core);
    const other = await newKey(core);
    assert.match(made.key, SECRET);
    assert.equal(readSigningSecret(made.key).length, 32);
    assert.notEqual(other.key, made.key);
    assert.deepEqual([made.use, made.agent_id, made.state], ["sign", LULU, "active"]);
    const kept = await core.store.keys.get(made.key_id);
    assert.equal(kept?.signingSecret, made.key);
    assert.equal(kept?.digest, hash("sha256", made.key, "hex"));
    const { key: _, ...view } = made;
    const listed = await core.keys.list(ROOT, { agent: LULU });
    assert.deepEqual(
      listed.keys.find(({ key_id }) => key_id === made.key_id),
      view,
    );
    const events = await dataOfEvents(core, "key.created");
    assert.deepEqual(events.at(-1), { key_id: other.key_id, use: "sign", agent_id: LULU });
    const said = JSON.stringify([listed, await core.journal.events(core.operator, { limit: 500 })]);
    for (const { key } of [made, other]) {
      assert.ok(!said.includes(key.slice(6)));
      assert.ok(!said.includes(hash("sha256", key, "hex")));
    }
  });

  it("is created only on request: other keys are bearer keys, and say so", async () => {
    await using core = await coreOnMemory();
    for (const use of ["bearer", undefined]) {
      const made = await core.keys.create(ROOT, { agent_id: LULU, ...(use === undefined ? {} : { use }) });
      assert.match(made.key, /^key_.*\./);
      assert.equal(made.use, "bearer");
      assert.equal((await core.store.keys.get(made.key_id))?.signingSecret, null);
    }
    await refused(newKey(core, { use: "both" }), "invalid_argument", /^use: must be one of bearer, sign/);
  });

  it("needs an agent, and is for sending alone", async () => {
    await using core = await coreOnMemory();
    await refused(
      core.keys.create(ROOT, { use: "sign" }),
      "invalid_argument",
      /^agent_id: a signing key needs one/,
    );
    await refused(
      newKey(core, { verbs: ["messages.send", "mailbox.read"] }),
      "invalid_argument",
      /^verbs: a signing key is good for messages\.send alone, not for mailbox\.read; leave verbs out$/,
    );
    await refused(newKey(core, { verbs: ["fly"] }), "invalid_argument", /^verbs: there is no fly/);
    assert.deepEqual((await newKey(core, { verbs: ["messages.send"] })).verbs, ["messages.send"]);
  });

  it("is handed out by a limited key only within its limits", async () => {
    await using core = await coreOnMemory();
    const verbs = new Set<Verb>(["keys.write", "messages.send"]);
    const limited = { ...operatorOf("default"), keyId: "key_limited", verbs };
    const wanted = { agent_id: LULU, use: "sign" };
    await refused(core.keys.create(limited, wanted), "permission_denied", /^verbs: a key that is limited/);
    assert.equal((await core.keys.create(limited, { ...wanted, verbs: ["messages.send"] })).use, "sign");
    await refused(core.keys.create(core.lulu, wanted), "permission_denied");
  });

  it("is refused as a bearer token, with the text for an unknown one", async () => {
    await using core = await coreOnMemory();
    const { store, clock, refusals } = core;
    const authenticator = new KeyAuthenticator({ store, clock, refusals }, { apiKey: "0123456789abcdef" });
    const { key, key_id } = await newKey(core);
    const bytes = toBase58(readSigningSecret(key));
    const unknown = await refused(authenticator.authenticate("Bearer nothing", "http"), "unauthenticated");
    for (const token of [key, key.slice(6), `${key_id}.${key}`, `${key_id}.${bytes}`, key_id]) {
      const refusal = await refused(authenticator.authenticate(`Bearer ${token}`, "http"), "unauthenticated");
      assert.equal(refusal.message, unknown.message, token);
    }
  });

  it("is refused as a bearer token even if its digest were that of a token", async () => {
    await using core = await coreOnMemory();
    const { store, clock, refusals } = core;
    const authenticator = new KeyAuthenticator({ store, clock, refusals }, { apiKey: undefined });
    const { key_id } = await newKey(core);
    const record = await store.keys.get(key_id);
    assert.ok(record);
    const secret = "2".repeat(43);
    await store.commit({
      tenant: "default",
      events: [],
      keys: [{ ...record, digest: hash("sha256", secret, "hex") }],
    });
    const token = `Bearer ${key_id}.${secret}`;
    await refused(authenticator.authenticate(token, "http"), "unauthenticated", /^unknown or revoked token/);
  });

  it("is rotated into another signing key, expires, and is revoked, as every key", async () => {
    await using core = await coreOnMemory();
    const atMs = core.clock.nowMs() + 2 * DAY_MS;
    const made = await newKey(core, { expires_at: atMs });
    const next = await core.keys.rotate(ROOT, made.key_id, { overlap_ms: 1_000 });
    assert.match(next.key, SECRET);
    assert.notEqual(next.key, made.key);
    assert.deepEqual(
      [next.use, next.old_key_id, next.expires_at],
      ["sign", made.key_id, new Date(atMs).toISOString()],
    );
    assert.equal((await core.store.keys.get(made.key_id))?.signingSecret, made.key);
    assert.equal((await core.store.keys.get(next.key_id))?.signingSecret, next.key);
    assert.equal((await core.keys.revoke(ROOT, next.key_id)).state, "revoked");
    core.clock.advance(1_000);
    const { keys } = await core.keys.list(ROOT, { agent: LULU });
    assert.equal(keys.find(({ key_id }) => key_id === made.key_id)?.state, "expired");
    assert.deepEqual((await dataOfEvents(core, "key.rotated")).at(-1)?.["use"], "sign");
  });

  it("ends with its agent", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await newKey(core);
    await core.agents.remove(core.operator, LULU);
    const kept = await core.store.keys.get(key_id);
    assert.notEqual(kept?.revokedAtMs, null);
    assert.equal(kept?.signingSecret, "");
  });

  it("loses its secret once it is revoked, and is still listed as a signing key", async () => {
    await using core = await coreOnMemory();
    const { store, clock, refusals } = core;
    const authenticator = new KeyAuthenticator({ store, clock, refusals }, { apiKey: undefined });
    const made = await newKey(core);
    const bearer = await core.keys.create(ROOT, { agent_id: LULU });
    assert.equal((await core.keys.revoke(ROOT, made.key_id)).use, "sign");
    assert.equal((await core.keys.revoke(ROOT, bearer.key_id)).use, "bearer");
    assert.equal((await store.keys.get(made.key_id))?.signingSecret, "");
    assert.equal((await store.keys.get(bearer.key_id))?.signingSecret, null);
    assert.deepEqual(
      (await dataOfEvents(core, "key.revoked")).map(({ use }) => use),
      ["sign", undefined],
    );
    const token = `Bearer ${made.key_id}.${toBase58(readSigningSecret(made.key))}`;
    await refused(authenticator.authenticate(token, "http"), "unauthenticated", /^unknown or revoked token/);
  });

  it("loses its secret soon after it has expired, and signs until then", async () => {
    await using core = await coreOnMemory();
    const made = await newKey(core, { expires_at: core.clock.nowMs() + 1_000 });
    const lasting = await newKey(core);
    core.clock.advance(999);
    await core.retention.step("default");
    assert.equal((await core.inbox.receive(signed(core, made), PLAIN)).created, true);
    core.clock.advance(1);
    await core.retention.step("default");
    assert.equal((await core.store.keys.get(made.key_id))?.signingSecret, "");
    assert.equal((await core.store.keys.get(lasting.key_id))?.signingSecret, lasting.key);
    const { keys } = await core.keys.list(ROOT, { agent: LULU });
    const view = keys.find(({ key_id }) => key_id === made.key_id);
    assert.deepEqual([view?.use, view?.state], ["sign", "expired"]);
  });

  it("does not accept signatures with an empty secret once its own is deleted", async () => {
    await using core = await coreOnMemory();
    const made = await newKey(core);
    const record = await core.store.keys.get(made.key_id);
    assert.ok(record);
    // Only the secret is deleted; the key is not revoked.
    await core.store.commit({ tenant: "default", events: [], keys: [{ ...record, signingSecret: "" }] });
    const message = signed(core, { ...made, key: "whsec_" });
    await refused(core.inbox.receive(message, PLAIN), "unauthenticated", /^signature: /);
  });
});
