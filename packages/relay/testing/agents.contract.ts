import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentId } from "@a2a-relay/protocol";
import type { AgentRecord } from "../src/core/ports/agents.ts";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { NOON_MS } from "./fake-clock.ts";
import {
  aNewAgent,
  clashOf,
  commit,
  LULU,
  type OpenStore,
  OTHER_TENANT,
  TENANT,
  ZHIWEI,
} from "./store-builders.ts";
import { ownedSinceMs, publicKeyOf } from "../src/core/rules/agent-owner.ts";
import { agentsNamed } from "../src/core/rules/agent-names.ts";

const OTHER = "other@host" as AgentId;

async function stored(store: RelayStore, id: AgentId): Promise<AgentRecord> {
  const found = await store.agents.get(TENANT, id);
  assert.ok(found, `there is no agent ${id}`);
  return found.agent;
}

async function put(store: RelayStore, agent: AgentRecord): Promise<void> {
  await commit(store, { agents: [agent] });
}

export function describeAgents(open: OpenStore): void {
  describe("agents", () => {
    it("gives back what was registered, in any script", async () => {
      await using store = await open();
      const agent = aNewAgent({
        aliases: ["小微", "wei"],
        callbackUrl: "https://a.example/钩",
        ttlMs: 5_000,
        publicKey: "key-of-zhiwei",
        isCustodial: true,
      });
      await put(store, agent);
      assert.deepEqual(await store.agents.get(TENANT, ZHIWEI), {
        agent: { ...agent, version: 1 },
        lastSeenAtMs: null,
      });
      assert.equal(await store.agents.get(TENANT, LULU), undefined);
    });

    it("updates by version and refuses a stale one", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      const first = await stored(store, ZHIWEI);
      await put(store, { ...first, displayName: "微" });
      assert.equal((await stored(store, ZHIWEI)).displayName, "微");
      assert.equal(await clashOf(store, { agents: [{ ...first, displayName: "晚了" }] }), "agent");
      assert.equal((await stored(store, ZHIWEI)).displayName, "微");
    });

    it("refuses a second new agent of the same id, also when the first was removed", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      assert.equal(await clashOf(store, { agents: [aNewAgent()] }), "agent");
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.equal(await clashOf(store, { agents: [aNewAgent()] }), "agent");
    });

    it("finds an agent by id, alias and display name; a display name that is an id or alias finds none", async () => {
      await using store = await open();
      await put(store, aNewAgent({ id: "b@host" as AgentId, displayName: "a@host", aliases: ["bee"] }));
      await put(store, aNewAgent({ id: "a@host" as AgentId, displayName: "bee", aliases: ["ay"] }));
      assert.deepEqual(await agentsNamed(store, TENANT, "a@host"), ["a@host"]);
      assert.deepEqual(await agentsNamed(store, TENANT, "bee"), ["b@host"]);
      assert.deepEqual(await agentsNamed(store, TENANT, "ay"), ["a@host"]);
      assert.deepEqual(await agentsNamed(store, TENANT, "AY"), []);
      assert.deepEqual(await agentsNamed(store, TENANT, "unknown"), []);
    });

    it("finds no agent by the id of a removed one, whatever others display as their name", async () => {
      await using store = await open();
      await put(store, aNewAgent({ id: "a@host" as AgentId }));
      await put(store, aNewAgent({ id: "b@host" as AgentId, displayName: "a@host" }));
      const left = (await store.agents.get(TENANT, "a@host" as AgentId))?.agent;
      assert.ok(left !== undefined);
      await put(store, { ...left, removedAtMs: 1 });
      assert.deepEqual(await agentsNamed(store, TENANT, "a@host"), []);
    });

    it("names an agent once, also when its id, alias and display name are the same", async () => {
      await using store = await open();
      await put(store, aNewAgent({ aliases: [ZHIWEI], displayName: ZHIWEI }));
      assert.deepEqual(await agentsNamed(store, TENANT, ZHIWEI), [ZHIWEI]);
    });

    it("lets agents share a display name, but no alias and no id", async () => {
      await using store = await open();
      await put(store, aNewAgent({ aliases: ["小微"] }));
      await put(store, aNewAgent({ id: OTHER }));
      assert.deepEqual(
        [...(await agentsNamed(store, TENANT, "知微"))].toSorted(),
        [OTHER, ZHIWEI].toSorted(),
      );
      const third = aNewAgent({ id: "third@host" as AgentId });
      assert.equal(await clashOf(store, { agents: [{ ...third, aliases: ["小微"] }] }), "agent_name");
      assert.equal(await clashOf(store, { agents: [{ ...third, aliases: [OTHER] }] }), "agent_name");
      assert.equal(await clashOf(store, { agents: [aNewAgent({ id: "小微" as AgentId })] }), "agent_name");
      const other = await stored(store, OTHER);
      assert.equal(await clashOf(store, { agents: [{ ...other, aliases: ["小微"] }] }), "agent_name");
    });

    it("frees the names an agent gives up, and all of them when it is removed", async () => {
      await using store = await open();
      await put(store, aNewAgent({ aliases: ["old", "kept"] }));
      await put(store, { ...(await stored(store, ZHIWEI)), aliases: ["kept"] });
      assert.deepEqual(await agentsNamed(store, TENANT, "old"), []);
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.deepEqual(await agentsNamed(store, TENANT, ZHIWEI), []);
      assert.deepEqual(await agentsNamed(store, TENANT, "知微"), []);
      await put(store, aNewAgent({ id: OTHER, aliases: ["kept", "old"] }));
      assert.deepEqual(await agentsNamed(store, TENANT, "kept"), [OTHER]);
    });

    it("finds agents by their newest names, also by names that were read before", async () => {
      await using store = await open();
      const names = ["小微", "old", ZHIWEI, OTHER];
      const found = (): Promise<readonly (readonly AgentId[])[]> =>
        Promise.all(names.map((name) => agentsNamed(store, TENANT, name)));
      assert.deepEqual(await found(), [[], [], [], []]);
      await put(store, aNewAgent({ aliases: ["old"] }));
      assert.deepEqual(await found(), [[], [ZHIWEI], [ZHIWEI], []]);
      await put(store, { ...(await stored(store, ZHIWEI)), aliases: ["小微"] });
      assert.deepEqual(await found(), [[ZHIWEI], [], [ZHIWEI], []]);
      // A refused commit changes no name.
      const refused = [aNewAgent({ id: OTHER, aliases: ["old"] }), aNewAgent()];
      assert.equal(await clashOf(store, { agents: refused }), "agent");
      assert.deepEqual(await found(), [[ZHIWEI], [], [ZHIWEI], []]);
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.deepEqual(await found(), [[], [], [], []]);
    });

    it("keeps the id of a removed agent reserved and brings the agent back by version", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.equal(
        await clashOf(store, { agents: [aNewAgent({ id: OTHER, aliases: [ZHIWEI] })] }),
        "agent_name",
      );
      const removed = await stored(store, ZHIWEI);
      assert.equal(removed.removedAtMs, NOON_MS);
      await put(store, { ...removed, removedAtMs: null });
      assert.deepEqual(await agentsNamed(store, TENANT, ZHIWEI), [ZHIWEI]);
    });

    it("lists and counts by id the agents that are not removed", async () => {
      await using store = await open();
      const ids = ["a@h", "b@h", "c@h", "d@h"] as AgentId[];
      for (const id of ids.toReversed()) await put(store, aNewAgent({ id, displayName: id }));
      await put(store, { ...(await stored(store, "b@h" as AgentId)), removedAtMs: NOON_MS });
      const page = async (afterId: string, limit: number): Promise<readonly string[]> =>
        (await store.agents.list({ tenant: TENANT, isRemoved: false, afterId, limit })).map(
          ({ agent }) => agent.id,
        );
      assert.deepEqual(await page("", 2), ["a@h", "c@h"]);
      assert.deepEqual(await page("c@h", 2), ["d@h"]);
      assert.deepEqual(await store.agents.count(TENANT), { all: 3, remote: 0 });
    });

    it("tells the public key of an agent and finds the agent by it, until it leaves or takes another", async () => {
      await using store = await open();
      await put(store, aNewAgent({ publicKey: "k1" }));
      assert.equal(await store.agents.withKey(TENANT, "k1"), ZHIWEI);
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), "k1");
      await put(store, { ...(await stored(store, ZHIWEI)), publicKey: "k2" });
      assert.equal(await store.agents.withKey(TENANT, "k1"), undefined);
      assert.equal(await store.agents.withKey(TENANT, "k2"), ZHIWEI);
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), "k2");
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.equal(await store.agents.withKey(TENANT, "k2"), undefined);
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), undefined);
      assert.equal((await stored(store, ZHIWEI)).publicKey, "k2");
    });

    it("tells since when an id is its agent's", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      assert.equal(await ownedSinceMs(store, TENANT, ZHIWEI), 0);
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      assert.equal(await ownedSinceMs(store, TENANT, ZHIWEI), 0);
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: null, othersBeforeMs: NOON_MS + 7 });
      assert.equal(await ownedSinceMs(store, TENANT, ZHIWEI), NOON_MS + 7);
      assert.equal((await stored(store, ZHIWEI)).othersBeforeMs, NOON_MS + 7);
      assert.equal(await ownedSinceMs(store, OTHER_TENANT, ZHIWEI), 0);
      assert.equal(await ownedSinceMs(store, TENANT, LULU), 0);
    });

    it("finds no key of an unknown agent, or of one without a key", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), undefined);
      assert.equal(await publicKeyOf(store, TENANT, LULU), undefined);
      assert.equal(await store.agents.withKey(TENANT, "k1"), undefined);
      await put(store, aNewAgent({ id: OTHER }));
      await put(store, { ...(await stored(store, ZHIWEI)), publicKey: "k1" });
      assert.equal(await publicKeyOf(store, TENANT, ZHIWEI), "k1");
    });

    it("lets no two agents have one key, but frees the key of an agent that leaves", async () => {
      await using store = await open();
      await put(store, aNewAgent({ publicKey: "k1" }));
      assert.equal(
        await clashOf(store, { agents: [aNewAgent({ id: OTHER, publicKey: "k1" })] }),
        "agent_key",
      );
      assert.equal(await store.agents.get(TENANT, OTHER), undefined);
      await put(store, aNewAgent({ id: OTHER, publicKey: "k2" }));
      const other = await stored(store, OTHER);
      assert.equal(await clashOf(store, { agents: [{ ...other, publicKey: "k1" }] }), "agent_key");
      assert.equal(await publicKeyOf(store, TENANT, OTHER), "k2");
      await put(store, { ...(await stored(store, ZHIWEI)), displayName: "微" });
      await put(store, { ...(await stored(store, ZHIWEI)), removedAtMs: NOON_MS });
      await put(store, { ...other, publicKey: "k1" });
      assert.equal(await store.agents.withKey(TENANT, "k1"), OTHER);
      await put(store, { ...(await stored(store, ZHIWEI)), displayName: "离开了" });
      const back = { ...(await stored(store, ZHIWEI)), removedAtMs: null };
      assert.equal(await clashOf(store, { agents: [back] }), "agent_key");
    });

    it("gives a key to one of two agents that bring it at the same moment", async () => {
      await using store = await open();
      const outcomes = await Promise.all([
        clashOf(store, { agents: [aNewAgent({ publicKey: "k1" })] }),
        clashOf(store, { agents: [aNewAgent({ id: OTHER, publicKey: "k1" })] }),
      ]);
      assert.deepEqual(outcomes.toSorted(), ["agent_key", "none, it was committed"]);
      const [owner, other] = outcomes[0] === "agent_key" ? [OTHER, ZHIWEI] : [ZHIWEI, OTHER];
      assert.equal(await store.agents.withKey(TENANT, "k1"), owner);
      assert.equal(await publicKeyOf(store, TENANT, other), undefined);
    });

    it("keeps the private halves that it is given, by tenant and public key", async () => {
      await using store = await open();
      const mine = { tenant: TENANT, publicKey: "k1", privateKey: "私钥" };
      const theirs = { tenant: OTHER_TENANT, publicKey: "k1", privateKey: "他们的" };
      await commit(store, { custodialKeys: [mine, theirs] });
      assert.deepEqual(await store.agents.custodialKey(TENANT, "k1"), mine);
      assert.deepEqual(await store.agents.custodialKey(OTHER_TENANT, "k1"), theirs);
      assert.equal(await store.agents.custodialKey(TENANT, "k2"), undefined);
    });

    it("remembers when an agent was last seen, and never goes back", async () => {
      await using store = await open();
      await put(store, aNewAgent());
      const before = (await store.journal.chain(TENANT)).head;
      await store.agents.touch(TENANT, ZHIWEI, 2_000);
      await store.agents.touch(TENANT, ZHIWEI, 1_000);
      const seen = await store.agents.get(TENANT, ZHIWEI);
      assert.equal(seen?.lastSeenAtMs, 2_000);
      assert.equal(seen.agent.version, 1);
      assert.equal(
        (await store.agents.list({ tenant: TENANT, isRemoved: false, afterId: "", limit: 1 }))[0]
          ?.lastSeenAtMs,
        2_000,
      );
      assert.deepEqual((await store.journal.chain(TENANT)).head, before);
    });

    it("ignores a sighting of an unknown agent", async () => {
      await using store = await open();
      await store.agents.touch(TENANT, LULU, 2_000);
      assert.equal(await store.agents.get(TENANT, LULU), undefined);
    });
  });
}
