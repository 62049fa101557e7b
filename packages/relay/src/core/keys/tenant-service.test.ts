import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, operatorOf, rootOperator } from "../access/principal.ts";

const ROOT = rootOperator();
const ACME = { ...operatorOf("acme"), keyId: "key_7" };

async function withAcme(capabilities = false): Promise<CoreOnMemory> {
  const core = await coreOnMemory({ capabilities });
  await core.keys.create(ROOT, { tenant: "acme" });
  await core.keys.create(ROOT, { tenant: "工作室" });
  return core;
}

describe("tenants", () => {
  it("are all listed to the relay's operator; other operators see their own", async () => {
    await using core = await withAcme(true);
    const { tenants } = await core.tenants.list(ROOT);
    assert.deepEqual(
      tenants.map(({ tenant, capabilities }) => [tenant, capabilities]),
      [
        ["acme", "off"],
        ["default", "on"],
        ["工作室", "off"],
      ],
    );
    const own = await core.tenants.list(ACME);
    assert.deepEqual(own.tenants, [
      { tenant: "acme", capabilities: "off", created_at: "2026-05-08T12:00:00.000Z" },
    ]);
    await refused(core.tenants.list(core.lulu), "permission_denied");
  });

  it("are switched by their own operators, and by the relay's operator", async () => {
    await using core = await withAcme();
    assert.equal((await core.tenants.change(ACME, "acme", { capabilities: "on" })).capabilities, "on");
    assert.equal((await core.store.tenants.get("acme"))?.capabilities, true);
    await core.tenants.change(ROOT, "acme", { capabilities: "off" });
    await core.tenants.change(ROOT, "acme", { capabilities: "off" });
    const { events } = await core.journal.events(ACME, { type: "tenant.changed" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["capabilities"], data["created"]]),
      [
        ["operator", "off", true],
        ["operator:key_7", "on", false],
        ["operator", "off", false],
      ],
    );
  });

  it("are not switched by other tenants, which do not learn what tenants exist", async () => {
    await using core = await withAcme();
    const messages = [];
    for (const name of ["工作室", "nowhere", "default"]) {
      const error = await refused(
        core.tenants.change(ACME, name, { capabilities: "on" }),
        "permission_denied",
      );
      messages.push(error.message);
    }
    assert.equal(new Set(messages).size, 1);
    const lulu = agentOf("acme", core.lulu.agentId);
    await refused(core.tenants.change(lulu, "acme", { capabilities: "on" }), "permission_denied");
    await refused(core.tenants.change(ROOT, "nowhere", { capabilities: "on" }), "not_found", /first key/);
    await refused(core.tenants.change(ROOT, "a/b", { capabilities: "on" }), "invalid_argument");
    await refused(core.tenants.change(ROOT, "acme", { capabilities: true }), "invalid_argument", /on, off/);
  });

  it("take the default one's switch from the configuration", async () => {
    await using core = await withAcme();
    await refused(
      core.tenants.change(ROOT, "default", { capabilities: "on" }),
      "wrong_state",
      /A2A_RELAY_CAPABILITIES=on/,
    );
  });
});

describe("entering a tenant", () => {
  it("lets the relay's operator act in each tenant", async () => {
    await using core = await withAcme();
    assert.deepEqual(await core.tenants.enter(ROOT, "acme"), rootOperator("acme"));
    await refused(core.tenants.enter(ROOT, "nowhere"), "not_found");
  });

  it("refuses all other callers in the same words, with an event in their own tenant", async () => {
    await using core = await withAcme();
    assert.equal(await core.tenants.enter(ACME, "acme"), ACME);
    const messages = [];
    for (const name of ["default", "nowhere", "x".repeat(1_000)]) {
      messages.push((await refused(core.tenants.enter(ACME, name), "permission_denied")).message);
    }
    assert.equal(new Set(messages).size, 1);
    const { events } = await core.journal.events(ACME, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data]),
      ["default", "nowhere", "x".repeat(64)].map((tenant) => ["operator:key_7", { key_id: "key_7", tenant }]),
    );
    const own = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(own.events, [], "the tenant that was asked for hears nothing of it");
  });
});
