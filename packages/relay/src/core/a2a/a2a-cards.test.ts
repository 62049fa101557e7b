import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { AgentCard as SdkCard } from "@a2a-js/sdk";
import { A2A_DIALECTS, A2aError, type AgentId } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { refused } from "../../../testing/refusal.ts";
import { agentOf, operatorOf, type Principal } from "../access/principal.ts";
import { Directory } from "../agents/directory.ts";
import { A2aCardService, type A2aCardSettings } from "./a2a-cards.ts";
import type { A2aCaller } from "./a2a-request.ts";
import { relayCard } from "./a2a-cards.ts";

const SETTINGS: A2aCardSettings = {
  publicUrl: () => "https://relay.example",
  messageTtlMs: 604_800_000,
  version: "0.0.0-test",
};

function cardsOf(core: CoreOnMemory): A2aCardService {
  return new A2aCardService({ ...core, directory: new Directory(core.store) }, SETTINGS);
}

function golden(name: string): unknown {
  return JSON.parse(
    readFileSync(new URL(`../../../testing/golden/cards/${name}.json`, import.meta.url), "utf8"),
  );
}

function callerOf(principal: Principal, agentId: AgentId | undefined): A2aCaller {
  return { principal, agentId, version: "1.0", extensions: [], idempotencyKey: undefined };
}

async function a2aErrorOf(act: Promise<unknown>): Promise<string> {
  const reason = await act.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(reason instanceof A2aError, String(reason));
  return reason.a2a;
}

describe("the card of an agent", () => {
  it("is the one that GET /agents/{id} shows, by any of the agent's names", async () => {
    await using core = await coreOnMemory({ publicUrl: SETTINGS.publicUrl });
    const cards = cardsOf(core);
    await core.agents.register(core.operator, {
      agent_id: ZHIWEI,
      display_name: "知微",
      card: { url: "http://x" },
    });
    const { agent_card } = await core.agents.get(core.operator, ZHIWEI);
    for (const name of [ZHIWEI, "zhiwei", "知微"]) {
      for (const reader of [core.operator, core.lulu]) {
        assert.deepEqual((await cards.agentCard(reader, name)).card, agent_card);
      }
    }
    for (const name of [ZHIWEI, "zhiwei"]) {
      assert.deepEqual((await cards.agentCard(undefined, name)).card, agent_card);
    }
  });

  it("hides display names and remote agents from readers without a key", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    const register = (said: object): Promise<unknown> => core.agents.register(core.operator, said);
    for (const agent_id of ["secret-1", "secret-2"]) await register({ agent_id, display_name: "财务" });
    await register({ agent_id: "secret-3", display_name: "人事" });
    const remote = "https://remote.example/a2a";
    await core.send({ to: remote });
    assert.ok((await cards.agentCard(core.operator, remote)).card);
    for (const name of ["财务", "人事", "没有", remote]) {
      for (const read of [cards.agentCard.bind(cards), cards.writtenCard.bind(cards)]) {
        const { message, details } = await refused(read(undefined, name), "unknown_agent");
        assert.doesNotMatch(`${message} ${JSON.stringify(details)}`, /secret/);
      }
    }
    await refused(cards.agentCard(core.lulu, "财务"), "ambiguous_agent", /secret-1/);
    assert.equal((await cards.agentCard(core.lulu, "人事")).card["name"], "人事");
  });

  it("is of the default tenant for readers without a key, else of the reader's own", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    const acme = operatorOf("acme");
    await core.agents.register(acme, { agent_id: "kames", card: { name: "acme 的卡姆斯" } });
    await refused(cards.agentCard(undefined, "kames"), "unknown_agent");
    await refused(cards.agentCard(core.operator, "kames"), "unknown_agent");
    await refused(cards.agentCard(acme, LULU), "unknown_agent");
    const { card } = await cards.agentCard(acme, "kames");
    assert.equal(card["name"], "acme 的卡姆斯");
    const [first] = card["supportedInterfaces"] as readonly { readonly url: string }[];
    assert.equal(first?.url, "https://relay.example/t/acme/agents/kames/a2a");
  });

  it("is not for a key that may not read agents, nor of an agent that has left", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    const limited = { ...core.lulu, verbs: new Set(["threads.read"] as const) };
    await refused(cards.agentCard(limited, LULU), "permission_denied", /agents\.read/);
    await core.agents.remove(core.operator, ZHIWEI);
    await refused(cards.agentCard(undefined, ZHIWEI), "unknown_agent");
  });

  it("changes when the agent registers, is seen, or is missed", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    const changedAtMs = async (): Promise<number> =>
      (await cards.agentCard(undefined, LULU)).changedAtMs - NOON_MS;
    assert.equal(await changedAtMs(), 0);
    core.clock.advance(5_000);
    assert.equal(await changedAtMs(), 0);
    await core.agents.register(core.operator, { agent_id: LULU, ttl_ms: 60_000 });
    core.clock.advance(1_000);
    assert.equal(await changedAtMs(), 5_000);
    core.clock.advance(100_000);
    assert.equal(await changedAtMs(), 65_001);
    assert.equal((await cardsOf(core).agentCard(undefined, LULU)).changedAtMs - NOON_MS, 106_000);
  });
});

describe("the card that the owner registered", () => {
  const card = {
    name: "知微",
    url: "http://10.0.0.7/a2a",
    signatures: [{ protected: "e30" }],
    "x-own": null,
  };

  it("equals the registered one", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, card, direct: true });
    for (const reader of [undefined, core.lulu, core.zhiwei, core.operator]) {
      assert.deepEqual((await cards.writtenCard(reader, "zhiwei")).card, card);
    }
    assert.deepEqual((await cards.writtenCard(undefined, LULU)).card, {});
  });

  it("is only for the agent and operators where it names interfaces that are not to be shown", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    await core.agents.register(core.operator, { agent_id: ZHIWEI, card });
    assert.deepEqual((await cards.writtenCard(core.zhiwei, "zhiwei")).card, card);
    assert.deepEqual((await cards.writtenCard(core.operator, "zhiwei")).card, card);
    await refused(cards.writtenCard(undefined, "zhiwei"), "unauthenticated", /agent-card\.json is for all/);
    await refused(cards.writtenCard(core.lulu, "zhiwei"), "permission_denied", /agent-card\.json is for all/);
    assert.doesNotMatch(JSON.stringify((await cards.agentCard(undefined, "zhiwei")).card), /10\.0\.0\.7/);
  });
});

describe("the relay's own card", () => {
  it("is this one in 1.0, and this one in 0.3, and the official SDK knows every member", () => {
    const all = { ...SETTINGS, hasKeys: true, grpcUrl: () => "relay.example:9090" };
    const card = relayCard("default", all);
    assert.deepEqual(card, golden("relay-card-1.0"));
    assert.deepEqual(A2A_DIALECTS["0.3"].writeCard(card), golden("relay-card-0.3"));
    const read = SdkCard.toJSON(SdkCard.fromJSON(card)) as object;
    assert.deepEqual(Object.keys(read).toSorted(), Object.keys(card).toSorted());
  });

  it("is found under the relay's name too, with the addresses of the reader's tenant", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    assert.deepEqual(await cards.agentCard(undefined, "relay"), cards.relayCard());
    const inTenant = await cards.agentCard(agentOf("另一家", LULU), "relay");
    assert.deepEqual(inTenant, cards.relayCard("另一家"));
    const urls = (inTenant.card["supportedInterfaces"] as readonly { readonly url: string }[]).map(
      ({ url }) => url,
    );
    const base = "https://relay.example/t/%E5%8F%A6%E4%B8%80%E5%AE%B6";
    assert.deepEqual(new Set(urls), new Set([`${base}/a2a`, `${base}/agents/relay/a2a`]));
    await refused(core.agents.register(core.operator, { agent_id: "relay" }), "invalid_argument", /reserved/);
  });
});

describe("the extended card", () => {
  it("is served with the relay's members, and only where there is one", async () => {
    await using core = await coreOnMemory();
    const cards = cardsOf(core);
    const ask = (agentId?: AgentId): Promise<unknown> => cards.extended(callerOf(core.lulu, agentId));
    assert.equal(await a2aErrorOf(ask()), "UnsupportedOperation");
    assert.equal(await a2aErrorOf(ask(ZHIWEI)), "UnsupportedOperation");
    const card = { name: "知微", capabilities: { extendedAgentCard: true } };
    await core.agents.register(core.operator, { agent_id: ZHIWEI, card });
    assert.equal(await a2aErrorOf(ask(ZHIWEI)), "ExtendedAgentCardNotConfigured");
    const extended_card = { skills: [{ id: "机密" }] };
    await core.agents.register(core.operator, { agent_id: ZHIWEI, extended_card });
    const { skills, name, capabilities } = await cards.extended(callerOf(core.lulu, ZHIWEI));
    assert.deepEqual(skills, [{ id: "机密", name: "机密", description: "机密", tags: [] }]);
    assert.deepEqual([name, (capabilities as typeof card.capabilities).extendedAgentCard], ["知微", true]);
    const limited = { ...core.lulu, verbs: new Set(["threads.read"] as const) };
    await refused(cards.extended(callerOf(limited, ZHIWEI)), "permission_denied");
  });
});
