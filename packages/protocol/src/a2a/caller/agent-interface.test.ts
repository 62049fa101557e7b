import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  cardAddresses,
  interfacesOf,
  interfaceWithoutCard,
  isDowngrade,
  parseCard,
} from "./agent-interface.ts";

const ADDRESS = "https://a.example/rpc";
const CARD_URL = "https://a.example/.well-known/agent-card.json";

function listed(protocolBinding: string, protocolVersion?: string, more: object = {}): object {
  return {
    url: ADDRESS,
    protocolBinding,
    ...(protocolVersion === undefined ? {} : { protocolVersion }),
    ...more,
  };
}

/** The interfaces of a card, each in one line. */
function choiceOf(card: Readonly<Record<string, unknown>>): readonly string[] {
  return interfacesOf(card, CARD_URL).map(({ url, binding, dialect, otherDialect, a2aTenant }) => {
    const words = [binding, dialect, otherDialect && `or ${otherDialect}`, new URL(url).pathname, a2aTenant];
    return words.filter((word) => word).join(" ");
  });
}

/** The SDK and the relay take the first. */
const CHOICES: readonly (readonly [title: string, card: object, choice: readonly string[]])[] = [
  [
    "of 1.0: JSON-RPC first, then the newest version; what we cannot call is left out",
    {
      supportedInterfaces: [
        { url: "a.example:443", protocolBinding: "GRPC", protocolVersion: "1.0" },
        listed("HTTP+JSON", "1.0", { url: "/rest", tenant: "甲" }),
        listed("JSONRPC", "0.3", { url: "/old" }),
        listed("jsonrpc", "1.0.1"),
        listed("JSONRPC", "9.0"),
      ],
    },
    ["JSONRPC 1.0 /rpc", "JSONRPC 0.3 /old", "HTTP+JSON 1.0 /rest 甲"],
  ],
  [
    "in snake_case",
    { supported_interfaces: [{ url: ADDRESS, protocol_binding: "JSONRPC", protocol_version: "1.0" }] },
    ["JSONRPC 1.0 /rpc"],
  ],
  ["of 1.0 without a version", { supportedInterfaces: [listed("JSONRPC")] }, ["JSONRPC 0.3 or 1.0 /rpc"]],
  [
    "of 0.3, with its other transports",
    {
      protocolVersion: "0.3.0",
      url: "/rest",
      preferredTransport: "HTTP+JSON",
      additionalInterfaces: [{ url: ADDRESS, transport: "JSONRPC" }],
    },
    ["JSONRPC 0.3 /rpc", "HTTP+JSON 0.3 /rest"],
  ],
  ["of 0.2", { url: "/a2a", protocolVersion: "0.2.6" }, ["JSONRPC 0.2 /a2a"]],
  ["from before cards told versions", { url: "/a2a", version: "1" }, ["JSONRPC 0.3 or 0.1 /a2a"]],
  [
    "with addresses that cannot be called",
    {
      supportedInterfaces: [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://u:p@a.example/",
        undefined,
      ].map((url) => listed("JSONRPC", "1.0", { url })),
    },
    [],
  ],
  ["of no interface", { supportedInterfaces: "none", name: "甲" }, []],
];

describe("the choice among the interfaces of a card", () => {
  for (const [title, card, choice] of CHOICES) {
    it(title, () => assert.deepEqual(choiceOf({ ...card }), choice));
  }

  it("is the address itself for an agent without a card, in 0.3 or else 1.0", () => {
    const { url, binding, dialect, otherDialect } = interfaceWithoutCard(ADDRESS);
    assert.deepEqual([url, binding, dialect, otherDialect], [ADDRESS, "JSONRPC", "0.3", "1.0"]);
  });

  it("tells where a card that came over https leads to http", () => {
    const at = { ...interfaceWithoutCard("http://a.example/rpc") };
    assert.equal(isDowngrade(at, CARD_URL), true);
    assert.equal(isDowngrade(at, "http://a.example/agent.json"), false);
    assert.equal(isDowngrade(at, undefined), false);
    assert.equal(isDowngrade(interfaceWithoutCard(ADDRESS), CARD_URL), false);
  });
});

describe("the card of an agent", () => {
  it("is below the agent's address, or at the address if that is a JSON file", () => {
    const below = [CARD_URL, "https://a.example/.well-known/agent.json"];
    assert.deepEqual(cardAddresses("https://a.example"), below);
    assert.deepEqual(
      cardAddresses("https://a.example/x?y=1")[0],
      "https://a.example/x/.well-known/agent-card.json",
    );
    assert.deepEqual(cardAddresses("https://a.example/x.json"), ["https://a.example/x.json"]);
  });

  it("is a JSON object with an address", () => {
    assert.deepEqual(parseCard('{"url":"/a2a"}'), { url: "/a2a" });
    for (const text of ["", "<html>", "[]", "{}", '{"name":"甲"}', '{"supportedInterfaces":[]}']) {
      assert.equal(parseCard(text), undefined, text);
    }
  });
});
