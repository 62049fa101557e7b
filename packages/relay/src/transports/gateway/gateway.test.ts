import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CoreOnMemory, coreOnMemory, LULU } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { KeyAuthenticator } from "../../core/access/authenticator.ts";
import { rootOperator } from "../../core/access/principal.ts";
import { type ArrivingCall, Gateway } from "./gateway.ts";

const ROOT_KEY = "0123456789abcdef";
const ROOT = `Bearer ${ROOT_KEY}`;

function gatewayOf(core: CoreOnMemory, apiKey?: string): Gateway {
  return new Gateway({ ...core, authenticator: new KeyAuthenticator(core, { apiKey }) });
}

function call(credential?: string, tenant?: string): ArrivingCall {
  return { credential, tenant, transport: "grpc" };
}

describe("the gateway", () => {
  it("admits the holder of a key in its own tenant", async () => {
    await using core = await coreOnMemory();
    const gateway = gatewayOf(core, ROOT_KEY);
    const { key } = await core.keys.create(rootOperator(), { agent_id: LULU });
    for (const tenant of [undefined, "default"]) {
      const caller = await gateway.admit(call(`Bearer ${key}`, tenant));
      assert.equal(caller.kind === "agent" && caller.agentId, LULU);
    }
    await refused(gateway.admit(call(`Bearer ${key}`, "甲")), "permission_denied", /own tenant only/);
  });

  it("admits the relay's operator to every tenant that exists", async () => {
    await using core = await coreOnMemory();
    const gateway = gatewayOf(core, ROOT_KEY);
    await core.keys.create(rootOperator(), { tenant: "甲" });
    assert.deepEqual(await gateway.admit(call(ROOT, "甲")), rootOperator("甲"));
    await refused(gateway.admit(call(ROOT, "乙")), "not_found", /no tenant "乙"/);
  });

  it("refuses a caller without a key, and records the wire on which it came", async () => {
    await using core = await coreOnMemory();
    await refused(gatewayOf(core, ROOT_KEY).admit(call()), "unauthenticated");
    const { events } = await core.journal.events(core.operator, { type: "access.unauthenticated" });
    assert.deepEqual(
      events.map(({ data }) => data),
      [{ reason: "missing", transport: "grpc" }],
    );
  });

  it("lets anyone in where no key is needed, but checks a key and needs one for a tenant", async () => {
    await using core = await coreOnMemory();
    const gateway = gatewayOf(core, ROOT_KEY);
    assert.equal(await gateway.admitAnyone(call()), undefined);
    assert.equal(await gateway.admitAnyone(call("")), undefined);
    assert.deepEqual(await gateway.admitAnyone(call(ROOT)), rootOperator());
    await refused(gateway.admitAnyone(call("Bearer wrong")), "unauthenticated");
    await refused(gateway.admitAnyone(call(undefined, "default")), "unauthenticated");
    assert.deepEqual(await gatewayOf(core).admitAnyone(call()), rootOperator());
  });

  it("admits a connection again while its key is valid", async () => {
    await using core = await coreOnMemory();
    const gateway = gatewayOf(core, ROOT_KEY);
    const { key, key_id } = await core.keys.create(rootOperator(), { agent_id: LULU });
    const caller = await gateway.admit(call(`Bearer ${key}`));
    await gateway.readmit(caller);
    await core.keys.revoke(rootOperator(), key_id);
    await refused(gateway.readmit(caller), "unauthenticated", /ended/);
  });

  it("admits no one once the relay stops, whatever the caller shows", async () => {
    await using core = await coreOnMemory();
    const gateway = gatewayOf(core, ROOT_KEY);
    gateway.assertRunning();
    gateway.stop();
    assert.ok(gateway.stopping.aborted);
    for (const admitted of [
      gateway.admit(call(ROOT)),
      gateway.admit(call("Bearer wrong")),
      gateway.admitAnyone(call()),
      gateway.readmit(rootOperator()),
    ]) {
      await refused(admitted, "unavailable", /^the relay is stopping; try again in a moment$/);
    }
    assert.throws(() => gateway.assertRunning(), { code: "unavailable" });
  });
});
