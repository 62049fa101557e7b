import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { AgentCard as SdkCard } from "@a2a-js/sdk";
import { A2A_DIALECTS, type AgentCard, type AgentId } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { aNewAgent } from "../../../testing/store-builders.ts";
import { serveCard, serveExtendedCard } from "./agent-card.ts";
import type { AgentRecord, AgentWithPresence } from "../ports/agents.ts";
import type { CardSettings } from "./card-interfaces.ts";

const SETTINGS: CardSettings = { publicUrl: () => "https://relay.example", messageTtlMs: 604_800_000 };

type Members = Readonly<Record<string, unknown>>;

/** The members that the tests read. */
interface Seen {
  readonly supportedInterfaces: readonly Members[];
  readonly capabilities: Members & { readonly extensions: readonly Members[] };
  readonly skills: readonly Members[];
  readonly [member: string]: unknown;
}

function found(said: Partial<AgentRecord> = {}, lastSeenAtMs: number | null = NOON_MS): AgentWithPresence {
  return { agent: aNewAgent(said), lastSeenAtMs };
}

function served(
  said: Partial<AgentRecord> = {},
  settings: Partial<CardSettings> = {},
  nowMs = NOON_MS,
): Seen {
  return serveCard(found(said), { ...SETTINGS, ...settings }, nowMs) as Seen;
}

function urlsOf(card: Seen): readonly unknown[] {
  return card.supportedInterfaces.map(({ protocolBinding, protocolVersion, url }) =>
    [protocolBinding, protocolVersion, url].join(" "),
  );
}

/** The card after the official SDK has parsed and written it, which drops unknown members. */
function bySdk(card: AgentCard): unknown {
  return SdkCard.toJSON(SdkCard.fromJSON(card));
}

/** The SDK writes neither empty members nor a default of false. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (typeof value !== "object" || value === null) return value;
  const isDefault = ([name, one]: readonly [string, unknown]): boolean =>
    (name === "required" && one === false) ||
    (Array.isArray(one) && one.length === 0) ||
    (name === "schemes" && Object.keys(one as object).length === 0);
  return Object.fromEntries(
    Object.entries(value)
      .filter((member) => !isDefault(member))
      .map(([name, one]) => [name, withoutDefaults(one)]),
  );
}

function golden(name: string): unknown {
  return JSON.parse(
    readFileSync(new URL(`../../../testing/golden/cards/${name}.json`, import.meta.url), "utf8"),
  );
}

/** A 1.0 card with every member. */
const WHOLE_CARD = {
  name: "知微",
  description: "翻译合同",
  version: "2.1.0",
  provider: { organization: "知微工作室", url: "https://zhiwei.example" },
  documentationUrl: "https://zhiwei.example/docs",
  iconUrl: "https://zhiwei.example/icon.png",
  supportedInterfaces: [
    { url: "https://zhiwei.example/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
  ],
  capabilities: {
    streaming: true,
    extensions: [
      { uri: "https://zhiwei.example/ext/v1", description: "术语表", required: false, params: { n: 1 } },
    ],
  },
  securitySchemes: { own: { httpAuthSecurityScheme: { scheme: "Basic" } } },
  securityRequirements: [{ schemes: { own: { list: ["read"] } } }],
  defaultInputModes: ["text/plain", "application/pdf"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "translate",
      name: "翻译",
      description: "中英互译",
      tags: ["翻译", "合同"],
      examples: ["请把这份合同译成英文"],
      inputModes: ["application/pdf"],
      securityRequirements: [{ schemes: { own: { list: [] } } }],
    },
  ],
  signatures: [{ protected: "e30", signature: "c2ln" }],
};
const WHOLE = {
  id: "知微@工作室" as AgentId,
  card: WHOLE_CARD,
  extendedCard: {},
  isDirect: true,
  ttlMs: 60_000,
};
const WITH_ALL: CardSettings = { ...SETTINGS, grpcUrl: () => "relay.example:9090", hasKeys: true };

describe("the card that is served", () => {
  it("is this one in 1.0, and this one in 0.3", () => {
    const card = serveCard(found(WHOLE), WITH_ALL, NOON_MS);
    assert.deepEqual(card, golden("agent-card-1.0"));
    assert.deepEqual(A2A_DIALECTS["0.3"].writeCard(card), golden("agent-card-0.3"));
  });

  it("has nothing that 1.0 does not know, whatever its owner wrote", () => {
    const strange = {
      ...WHOLE_CARD,
      authentication: { schemes: ["Bearer"] },
      "x-own": 1,
      provider: { ...WHOLE_CARD.provider, phone: "123" },
      capabilities: { ...WHOLE_CARD.capabilities, stateTransitionHistory: true, speed: "high" },
      supportedInterfaces: [{ ...WHOLE_CARD.supportedInterfaces[0], region: "eu" }],
      skills: WHOLE_CARD.skills.map((skill) => ({ ...skill, level: 3 })),
    };
    const older = {
      name: "旧",
      url: "https://old.example",
      preferredTransport: "JSONRPC",
      protocolVersion: "0.3.0",
    };
    const leveled = { id: "a", level: 3, tags: { lang: "zh" } };
    const agents = [
      found(WHOLE),
      found({ ...WHOLE, card: strange }),
      found({ card: older, isDirect: true }),
      found({ card: {} }),
      found({ card: {}, skills: [leveled] }),
    ];
    for (const settings of [SETTINGS, WITH_ALL]) {
      for (const agent of agents) {
        const card = serveCard(agent, settings, NOON_MS);
        assert.deepEqual(withoutDefaults(bySdk(card)), withoutDefaults(card));
      }
    }
  });

  it("is whole even where the owner wrote nothing, or nonsense", () => {
    const nonsense = {
      name: 7,
      description: "",
      version: null,
      provider: "me",
      capabilities: [],
      defaultInputModes: "text",
      defaultOutputModes: [1],
      skills: ["翻译", { id: 1 }, null],
      supportedInterfaces: [{}, "x"],
      securitySchemes: [],
    };
    for (const card of [{}, nonsense]) {
      const seen = served({ card, skills: [], displayName: "知微", isDirect: true });
      assert.deepEqual(
        [seen["name"], seen["description"], seen["version"]],
        ["知微", "知微, reachable through this relay", "1.0.0"],
      );
      assert.deepEqual(
        [seen["defaultInputModes"], seen["defaultOutputModes"]],
        [["text/plain"], ["text/plain"]],
      );
      assert.deepEqual([seen.skills, seen["provider"]], [[], undefined]);
      assert.equal(seen.supportedInterfaces.length, 4);
    }
  });

  it("completes skills: those of the card, else those that were registered", () => {
    const { skills } = served({ card: { skills: [{ id: "s", name: "S" }, { name: "只有名字" }] } });
    assert.deepEqual(skills, [
      { id: "s", name: "S", description: "S", tags: [] },
      { id: "只有名字", name: "只有名字", description: "只有名字", tags: [] },
    ]);
    const registered = served({
      card: {},
      skills: [{ id: "翻译", description: "中英", tags: { lang: "zh" } }],
    });
    assert.deepEqual(registered.skills, [
      { id: "翻译", name: "翻译", description: "中英", tags: ["lang:zh"] },
    ]);
  });
});

describe("the interfaces of a card", () => {
  it("begin with the relay's, and end with the owner's only where it is direct", () => {
    const url = "https://relay.example/agents/lulu@kamac/a2a";
    const relays = [
      `JSONRPC 1.0 ${url}`,
      `HTTP+JSON 1.0 ${url}`,
      `JSONRPC 0.3 ${url}`,
      `HTTP+JSON 0.3 ${url}`,
    ];
    const id = "lulu@kamac" as AgentId;
    assert.deepEqual(urlsOf(served({ ...WHOLE, id, isDirect: false })), relays);
    assert.deepEqual(urlsOf(served({ ...WHOLE, id })), [...relays, "JSONRPC 1.0 https://zhiwei.example/a2a"]);
  });

  it("count those of a 0.3 card too", () => {
    const card = {
      url: "https://old.example/rpc",
      preferredTransport: "JSONRPC",
      additionalInterfaces: [{ url: "https://old.example/rest", transport: "HTTP+JSON" }],
      protocolVersion: "0.3.0",
    };
    assert.deepEqual(urlsOf(served({ card, isDirect: true })).slice(4), [
      "JSONRPC 0.3 https://old.example/rpc",
      "HTTP+JSON 0.3 https://old.example/rest",
    ]);
    assert.equal(urlsOf(served({ card })).length, 4);
  });

  it("have gRPC with the agent's id as tenant, when it listens", () => {
    const id = "知微@工作室" as AgentId;
    const card = served({ id }, { grpcUrl: () => "relay.example:9090" });
    assert.deepEqual(
      card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding === "GRPC"),
      [{ url: "relay.example:9090", protocolBinding: "GRPC", protocolVersion: "1.0", tenant: id }],
    );
    assert.equal(served({ id }, { grpcUrl: () => undefined }).supportedInterfaces.length, 4);
  });

  it("have addresses in which everything is percent-encoded that has to be", () => {
    const urlOf = (id: string, tenant = "default"): unknown =>
      served({ id: id as AgentId, tenant }).supportedInterfaces[0]?.["url"];
    assert.equal(urlOf("urn:uuid:1"), "https://relay.example/agents/urn:uuid:1/a2a");
    assert.equal(urlOf("a[1]&b=c+d"), "https://relay.example/agents/a%5B1%5D%26b%3Dc%2Bd/a2a");
    assert.equal(urlOf("知微"), "https://relay.example/agents/%E7%9F%A5%E5%BE%AE/a2a");
    assert.equal(urlOf("a", "另一家"), "https://relay.example/t/%E5%8F%A6%E4%B8%80%E5%AE%B6/agents/a/a2a");
  });
});

describe("the capabilities of a card", () => {
  it("stream and push unless the owner switched that off", () => {
    const of = (capabilities: object): Members => served({ card: { capabilities } }).capabilities;
    assert.deepEqual([of({})["streaming"], of({})["pushNotifications"]], [true, true]);
    const off = of({ streaming: false, pushNotifications: false });
    assert.deepEqual([off["streaming"], off["pushNotifications"]], [false, false]);
  });

  it("have an extended card where one was registered or the owner says so", () => {
    const of = (said: Partial<AgentRecord>): unknown => served(said).capabilities["extendedAgentCard"];
    assert.equal(of({}), undefined);
    assert.equal(of({ extendedCard: {} }), true);
    assert.equal(of({ card: { supportsAuthenticatedExtendedCard: true } }), true);
    assert.equal(of({ card: { capabilities: { extendedAgentCard: true } } }), true);
  });

  it("name the relay's extensions behind the owner's, each once and none required", () => {
    const uri = "urn:a2a-relay:extension:availability:v1";
    const forged = { uri, required: true, params: { presence: "online" } };
    const { extensions } = served({
      card: { capabilities: { extensions: [{ uri: "https://a.example" }, forged] } },
      ttlMs: null,
    }).capabilities;
    assert.deepEqual(
      extensions.map((extension) => extension["uri"]),
      [
        "https://a.example",
        "urn:a2a-relay:extension:stream-resume:v1",
        "urn:a2a-relay:extension:idempotency-key:v1",
        uri,
      ],
    );
    assert.deepEqual(
      extensions.map(({ required }) => required),
      [undefined, false, false, false],
    );
  });

  it("tell whether the agent is online", () => {
    const at = (nowMs: number, ttlMs: number | null, seenAtMs: number | null = NOON_MS): unknown => {
      const card = serveCard(found({ ttlMs }, seenAtMs), SETTINGS, nowMs) as Seen;
      return card.capabilities.extensions.at(-1)?.["params"];
    };
    const always = { offline_delivery: true, message_ttl_ms: 604_800_000 };
    const last_seen_at = "2026-05-08T12:00:00.000Z";
    assert.deepEqual(at(NOON_MS + 60_000, 60_000), { presence: "online", last_seen_at, ...always });
    assert.deepEqual(at(NOON_MS + 60_001, 60_000), { presence: "offline", last_seen_at, ...always });
    assert.deepEqual(at(NOON_MS, null), { presence: "unknown", last_seen_at, ...always });
    assert.deepEqual(at(NOON_MS, 60_000, null), { presence: "unknown", ...always });
  });
});

describe("the security of a card", () => {
  it("is the relay's: a bearer key where keys are in force, nothing under local trust", () => {
    const keyed = served({ ...WHOLE, isDirect: false }, { hasKeys: true });
    assert.deepEqual(Object.keys(keyed["securitySchemes"] as Members), ["relayKey"]);
    assert.deepEqual(keyed["securityRequirements"], [{ schemes: { relayKey: { list: [] } } }]);
    assert.equal(keyed.skills[0]?.["securityRequirements"], undefined);
    const trusted = served({ ...WHOLE, isDirect: false });
    assert.deepEqual([trusted["securitySchemes"], trusted["securityRequirements"]], [undefined, undefined]);
  });

  it("has the owner's as another choice where callers may go to the owner", () => {
    const theirs = WHOLE_CARD.securityRequirements;
    const keyed = served(WHOLE, { hasKeys: true });
    assert.deepEqual(Object.keys(keyed["securitySchemes"] as Members), ["own", "relayKey"]);
    assert.deepEqual(keyed["securityRequirements"], [{ schemes: { relayKey: { list: [] } } }, ...theirs]);
    assert.deepEqual(served(WHOLE)["securityRequirements"], [{ schemes: {} }, ...theirs]);
  });
});

describe("the extended card", () => {
  it("is completed like the other one, from which it takes what it does not say", () => {
    const extended = { skills: [{ id: "机密" }], url: "https://secret.example" };
    const agent = { card: { ...WHOLE_CARD, skills: [] }, extendedCard: extended };
    const card = serveExtendedCard(found(agent), extended, SETTINGS, NOON_MS) as Seen;
    assert.deepEqual([card["name"], card["description"]], ["知微", "翻译合同"]);
    assert.deepEqual(card.skills, [{ id: "机密", name: "机密", description: "机密", tags: [] }]);
    assert.equal(card.supportedInterfaces.length, 4);
    assert.deepEqual(withoutDefaults(bySdk(card)), withoutDefaults(card));
  });
});
