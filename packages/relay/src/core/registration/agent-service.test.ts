import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";

describe("registering", () => {
  it("assigns an id when none is given", async () => {
    await using core = await coreOnMemory();
    const { agent_id, created, agent } = await core.agents.register(core.operator, {});
    assert.match(agent_id, /^urn:uuid:[0-9a-f-]{36}$/);
    assert.deepEqual([created, agent.agent_id, agent.display_name], [true, agent_id, agent_id]);
  });

  it("shows what was said, and fills what was not", async () => {
    await using core = await coreOnMemory();
    const said = {
      agent_id: "kames@kamac",
      aliases: ["kames", "卡姆斯"],
      display_name: "Kames",
      callback_url: "https://kames.example/hook?x=1",
      skills: [{ id: "translate", description: "翻译", tags: { lang: "zh" }, level: 3 }],
      representative_queries: ["translate this"],
      ttl_ms: 60_000,
      card: { description: "翻译员", version: "2.0.0" },
    };
    const { agent } = await core.agents.register(core.operator, said);
    const { card, ...rest } = said;
    assert.match(agent.pubkey_b58 ?? "", /^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    assert.deepEqual(agent, {
      ...rest,
      slug: "kames_kamac",
      presence: "online",
      pubkey_b58: agent.pubkey_b58,
      custodial: true,
      registered_at: "2026-05-08T12:00:00.000Z",
      last_seen_at: "2026-05-08T12:00:00.000Z",
      agent_card: agent.agent_card,
    });
    const { name, description, version, skills } = agent.agent_card;
    assert.deepEqual({ description, version }, card);
    assert.equal(name, "Kames");
    assert.deepEqual(skills, [
      { id: "translate", name: "translate", description: "翻译", tags: ["lang:zh"] },
    ]);
    assert.deepEqual(await core.agents.get(core.operator, "卡姆斯"), agent);
  });

  it("says a bounded number of bytes, counted with what was said before", async () => {
    await using core = await coreOnMemory();
    const { agents, operator } = core;
    const agent_id = "kames@kamac";
    const card = (chars: number): object => ({ description: "知".repeat(chars) });
    await refused(agents.register(operator, { agent_id, card: card(22_000) }), "too_large", /65536 bytes/);
    await refused(agents.get(operator, agent_id), "unknown_agent");
    const { agent } = await agents.register(operator, { agent_id, card: card(15_000) });
    const representative_queries = Array.from({ length: 50 }, () => "问".repeat(300));
    await refused(agents.register(operator, { agent_id, representative_queries }), "too_large");
    assert.deepEqual(await agents.get(operator, agent_id), agent);
    await agents.register(operator, { agent_id, representative_queries, card: {} });
  });

  it("again changes what is said and leaves the rest", async () => {
    await using core = await coreOnMemory();
    const agent_id = "kames@kamac";
    const whole = {
      agent_id,
      aliases: ["kames"],
      display_name: "Kames",
      callback_url: "http://127.0.0.1:9/hook",
      skills: [{ id: "a" }],
      representative_queries: ["q"],
      ttl_ms: 60_000,
      card: { name: "K", description: "翻译员" },
    };
    const first = await core.agents.register(core.operator, whole);
    core.clock.advance(1_000);
    const second = await core.agents.register(core.operator, { agent_id, display_name: "K2" });
    assert.equal(second.created, false);
    const { agent_card: card, ...rest } = second.agent;
    const { agent_card: cardBefore, ...restBefore } = first.agent;
    assert.deepEqual(rest, {
      ...restBefore,
      display_name: "K2",
      last_seen_at: "2026-05-08T12:00:01.000Z",
    });
    // Its capabilities hold the time at which the agent was last seen.
    assert.deepEqual({ ...card, capabilities: {} }, { ...cardBefore, capabilities: {} });
    const emptied = { agent_id, aliases: [], callback_url: null, ttl_ms: null, skills: [] };
    const { agent } = await core.agents.register(core.operator, emptied);
    assert.deepEqual(
      [agent.aliases, agent.callback_url, agent.ttl_ms, agent.skills],
      [[], undefined, undefined, []],
    );
  });

  it("takes the name of the card when there is no other", async () => {
    await using core = await coreOnMemory();
    for (const member of ["card", "agent_card"]) {
      const { agent } = await core.agents.register(core.operator, { [member]: { name: "名片" } });
      assert.deepEqual([agent.display_name, agent.agent_card["name"]], ["名片", "名片"]);
    }
  });

  it("is refused for a name of another agent, and names it", async () => {
    await using core = await coreOnMemory();
    for (const name of [LULU, "lulu"]) {
      const request = { agent_id: "kames@kamac", aliases: ["kames", name] };
      const error = await refused(core.agents.register(core.operator, request), "conflict", /lulu@kamac/);
      assert.deepEqual(error.details, { name, taken_by: [LULU] });
    }
    await refused(core.agents.register(core.operator, { agent_id: "lulu" }), "conflict");
    assert.equal((await core.agents.list(core.operator, {})).total, 2);
  });

  it("at the same time under one id is one agent", async () => {
    await using core = await coreOnMemory();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        core.agents.register(core.operator, { agent_id: "kames@kamac", display_name: `${index}` }),
      ),
    );
    assert.equal(answers.filter(({ created }) => created).length, 1);
    assert.equal((await core.agents.list(core.operator, {})).total, 3);
  });

  const wrong: readonly [what: string, request: unknown, code: "invalid_argument" | "too_large"][] = [
    ["nothing", undefined, "invalid_argument"],
    ["a list", [], "invalid_argument"],
    ["an unknown field", { agentId: "a" }, "invalid_argument"],
    ["an id with a slash", { agent_id: "a/b" }, "invalid_argument"],
    ["an id that climbs", { agent_id: ".." }, "invalid_argument"],
    ["an id that is null", { agent_id: null }, "invalid_argument"],
    ["a reserved id", { agent_id: "postmaster@relay" }, "invalid_argument"],
    ["the operator's name", { agent_id: "operator" }, "invalid_argument"],
    ["a skill as its id", { agent_id: "skill:translate" }, "invalid_argument"],
    ["a URL as its id", { agent_id: "https:a" }, "invalid_argument"],
    ["a long id", { agent_id: "x".repeat(201) }, "too_large"],
    ["an alias that is reserved", { aliases: ["postmaster@relay"] }, "invalid_argument"],
    ["an alias with a blank", { aliases: ["a b"] }, "invalid_argument"],
    ["an alias twice", { aliases: ["a", "a"] }, "invalid_argument"],
    ["too many aliases", { aliases: Array.from({ length: 21 }, (_, index) => `a${index}`) }, "too_large"],
    ["an empty display name", { display_name: "" }, "invalid_argument"],
    ["a callback that is no URL", { callback_url: "hook" }, "invalid_argument"],
    ["a callback to a file", { callback_url: "file:///etc/passwd" }, "invalid_argument"],
    ["a callback with credentials", { callback_url: "https://u:p@a.example/" }, "invalid_argument"],
    ["a TTL of nothing", { ttl_ms: 0 }, "invalid_argument"],
    ["a TTL without end", { ttl_ms: LIMITS.agentTtlMsMax + 1 }, "invalid_argument"],
    ["a card that is text", { card: "card" }, "invalid_argument"],
    ["a skill without an id", { skills: [{}] }, "invalid_argument"],
    ["tags that are a list", { skills: [{ id: "a", tags: ["x"] }] }, "invalid_argument"],
    ["a lone surrogate", { display_name: "\ud800" }, "invalid_argument"],
  ];
  for (const [what, request, code] of wrong) {
    it(`is refused with ${what}`, async () => {
      await using core = await coreOnMemory();
      await refused(core.agents.register(core.operator, request), code);
      assert.equal((await core.agents.list(core.operator, {})).total, 2);
    });
  }
});

describe("presence", () => {
  it("is online until the TTL after the last heartbeat, then offline; without a TTL it is unknown", async () => {
    await using core = await coreOnMemory();
    const { agents, operator, clock } = core;
    await agents.register(operator, { agent_id: LULU, ttl_ms: 1_000 });
    const presence = async (id: string): Promise<string> => (await agents.get(operator, id)).presence;
    assert.deepEqual([await presence(LULU), await presence(ZHIWEI)], ["online", "unknown"]);
    clock.advance(1_000);
    assert.equal(await presence(LULU), "online");
    clock.advance(1);
    assert.equal(await presence(LULU), "offline");
    assert.equal((await agents.heartbeat(operator, "lulu")).presence, "online");
    assert.equal(await presence(LULU), "online");
  });

  it("never closes a mailbox", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: ZHIWEI, ttl_ms: 1_000 });
    core.clock.advance(1_000_000);
    await core.send();
    assert.equal((await core.inboxOf(ZHIWEI)).length, 1);
  });
});

describe("the list of agents", () => {
  it("goes by id and from page to page, in both spellings", async () => {
    await using core = await coreOnMemory();
    for (const id of ["b", "a", "c"]) await core.agents.register(core.operator, { agent_id: id });
    const seen: string[] = [];
    let query: Record<string, unknown> = { limit: 2 };
    for (;;) {
      const { items, agents, total, pageToken } = await core.agents.list(core.operator, query);
      assert.deepEqual([items, total], [agents, 5]);
      seen.push(...items.map(({ agent_id }) => agent_id));
      if (pageToken === undefined) break;
      query = { limit: 2, page_token: pageToken };
    }
    assert.deepEqual(seen, ["a", "b", "c", LULU, ZHIWEI]);
  });

  it("is refused with a page that makes no sense", async () => {
    await using core = await coreOnMemory();
    for (const limit of [0, -1, 501, "x"]) {
      await refused(core.agents.list(core.operator, { limit }), "invalid_argument");
    }
  });
});

describe("a name", () => {
  it("that is an exact id wins over what others are called", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kam" });
    await core.agents.register(core.operator, { agent_id: "other", display_name: "kam" });
    assert.equal((await core.agents.get(core.operator, "kam")).agent_id, "kam");
  });

  it("that two agents go by is refused, and both are named", async () => {
    await using core = await coreOnMemory();
    for (const agent_id of ["kames@kamac", "kames@blocks"]) {
      await core.agents.register(core.operator, { agent_id, display_name: "kames" });
    }
    const error = await refused(core.send({ to: "kames" }), "ambiguous_agent", /use the full id/);
    assert.deepEqual(
      new Set(error.details?.["candidates"] as string[]),
      new Set(["kames@kamac", "kames@blocks"]),
    );
    assert.equal((await core.send({ to: "kames@blocks" })).receipt.recipient, "kames@blocks");
  });

  it("that one agent goes by as its display name finds it", async () => {
    await using core = await coreOnMemory();
    await core.agents.register(core.operator, { agent_id: "kames@kamac", display_name: "卡姆斯" });
    assert.equal((await core.send({ to: "卡姆斯" })).receipt.recipient, "kames@kamac");
  });
});
