import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { KeyAuthenticator } from "../access/authenticator.ts";
import type { Principal } from "../access/principal.ts";
import { RefusedCallers } from "../access/refused-callers.ts";

const KAMES = "kames@kamac" as AgentId;
const HOUR_MS = 3_600_000;

/** The holder of a key that expires in an hour. */
async function guest(core: CoreOnMemory, agent_id?: AgentId) {
  const expiresAtMs = core.clock.nowMs() + HOUR_MS;
  const scope = agent_id === undefined ? {} : { agent_id };
  const { key, key_id } = await core.keys.create(core.operator, { ...scope, expires_at: expiresAtMs });
  const parts = { store: core.store, clock: core.clock, refusals: new RefusedCallers(core) };
  const authenticator = new KeyAuthenticator(parts, { apiKey: "root" });
  const caller: Principal = await authenticator.authenticate(`Bearer ${key}`, "http");
  return { caller, key_id, expiresAtMs };
}

describe("a key that ends", () => {
  it("creates none that ends later, or never, and the refusal is recorded", async () => {
    await using core = await coreOnMemory();
    const { caller, expiresAtMs } = await guest(core);
    await refused(core.keys.create(caller, {}), "permission_denied", /^expires_at: a key that ends/);
    const later = { expires_at: expiresAtMs + 1 };
    await refused(core.keys.create(caller, later), "permission_denied");
    await core.keys.create(caller, { expires_at: expiresAtMs });
    const { events } = await core.journal.events(core.operator, { type: "access.denied" });
    assert.deepEqual(
      events.map(({ data }) => data["verb"]),
      ["keys.write", "keys.write"],
    );
  });

  it("may not rotate a key without an end, but rotates itself", async () => {
    await using core = await coreOnMemory();
    const { caller, key_id, expiresAtMs } = await guest(core);
    const lasting = await core.keys.create(core.operator, {});
    await refused(core.keys.rotate(caller, lasting.key_id, {}), "permission_denied");
    const successor = await core.keys.rotate(caller, key_id, {});
    assert.equal(successor.expires_at, new Date(expiresAtMs).toISOString());
  });

  it("gives an agent that registers with it no key without an end", async () => {
    await using core = await coreOnMemory();
    const { caller, expiresAtMs } = await guest(core, KAMES);
    const { api_key = "" } = await core.agents.register(caller, { agent_id: KAMES });
    const [id = ""] = api_key.split(".");
    assert.equal((await core.store.keys.get(id))?.expiresAtMs, expiresAtMs);
  });
});

describe("a key that is revoked while its holder waits", () => {
  type Wait = (core: CoreOnMemory, caller: Principal) => Promise<unknown>;
  const waits: Readonly<Record<string, Wait>> = {
    "for messages": (core, caller) => core.mailboxes.read(caller, ZHIWEI, { wait_ms: 60_000 }),
    "for a lease": (core, caller) => core.mailboxes.lease(caller, ZHIWEI, { wait_ms: 60_000 }),
    "for a task": (core, caller) => core.taskQueue.nextTask(caller, { agent: ZHIWEI, wait_ms: 60_000 }),
    "for a task of any agent": (core, caller) => core.taskQueue.nextTask(caller, { wait_ms: 60_000 }),
    "for events": (core, caller) => core.journal.events(caller, { since: "latest", wait_ms: 60_000 }),
  };
  for (const [what, wait] of Object.entries(waits)) {
    it(`gets nothing that comes afterwards, ${what}`, async () => {
      await using core = await coreOnMemory();
      const { caller, key_id } = await guest(core);
      const answer = refused(wait(core, caller), "unauthenticated", /ended while its holder waited/);
      await core.clock.nextTurn();
      await core.keys.revoke(core.operator, key_id);
      await core.messages.send(core.operator, { from: LULU, to: ZHIWEI, type: "request", body: "只给新的" });
      await answer;
      assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
    });
  }
});
