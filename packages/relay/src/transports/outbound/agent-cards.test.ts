import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { anAnswer, FakeOutside } from "../../../testing/fake-outside.ts";
import { OutboundFailure } from "../egress/http-client.ts";
import { AgentCaller } from "./agent-caller.ts";
import { AgentCards } from "./agent-cards.ts";
import { OutboundExchange } from "./outbound-exchange.ts";

const HOST = "https://agent.example";
const RPC = { url: `${HOST}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
const REST = { url: `${HOST}/rest`, protocolBinding: "HTTP+JSON", protocolVersion: "1.0", tenant: "甲" };
const { signal } = new AbortController();

/** A host that serves these paths only. */
function hostWith(found: Readonly<Record<string, object>>): {
  readonly cards: AgentCards;
  readonly clock: FakeClock;
  readonly outside: FakeOutside;
  readonly asked: () => readonly string[];
} {
  const outside = new FakeOutside();
  const clock = new FakeClock();
  outside.receiver = ({ url, headers }) => {
    const card = found[url];
    if (card === undefined) return anAnswer(404);
    if (headers["if-none-match"] === '"一"') return anAnswer(304);
    return anAnswer(200, { headers: { etag: '"一"' }, text: JSON.stringify(card) });
  };
  const exchange = new OutboundExchange(outside, clock, { userAgent: "test", pushTimeoutMs: 1_000 });
  const asked = (): readonly string[] => outside.requests.map(({ url }) => url);
  return { cards: new AgentCards(new AgentCaller(exchange), clock), clock, outside, asked };
}

describe("the interface of a remote agent", () => {
  for (const [title, url, cardUrl] of [
    ["below its folder", `${HOST}/a`, `${HOST}/a/.well-known/agent-card.json`],
    ["below its folder with a slash", `${HOST}/a/`, `${HOST}/a/.well-known/agent-card.json`],
    ["where it was before 0.3", HOST, `${HOST}/.well-known/agent.json`],
    ["at the address itself", `${HOST}/cards/7`, `${HOST}/cards/7`],
    ["at the address of the card", `${HOST}/x/agent-card.json`, `${HOST}/x/agent-card.json`],
  ] as const) {
    it(`is read from a card ${title}`, async () => {
      const { cards } = hostWith({ [cardUrl]: { name: "甲", supportedInterfaces: [RPC] } });
      const at = await cards.find(url, signal);
      assert.deepEqual(at, { url: RPC.url, binding: "JSONRPC", dialect: "1.0", a2aTenant: null });
    });
  }

  it("is read from the card of its host when that names the address", async () => {
    const { cards } = hostWith({
      [`${HOST}/.well-known/agent-card.json`]: { supportedInterfaces: [RPC, REST] },
    });
    assert.deepEqual(await cards.find(REST.url, signal), {
      url: REST.url,
      binding: "HTTP+JSON",
      dialect: "1.0",
      a2aTenant: "甲",
    });
    assert.equal((await cards.find(`${HOST}/other`, signal)).otherDialect, "1.0");
  });

  it("is chosen among its interfaces: JSON-RPC first, then the newest", async () => {
    const older = { ...RPC, url: `${HOST}/old`, protocolVersion: "0.3" };
    const grpc = { url: "agent.example:443", protocolBinding: "GRPC", protocolVersion: "1.0" };
    const { cards } = hostWith({
      [`${HOST}/.well-known/agent-card.json`]: { supportedInterfaces: [grpc, REST, older, RPC] },
    });
    assert.equal((await cards.find(HOST, signal)).url, RPC.url);
  });

  it("is read from cards of older versions, also as a relative URL", async () => {
    const { cards } = hostWith({
      [`${HOST}/.well-known/agent.json`]: { name: "旧", url: "/a2a", version: "1" },
    });
    const at = await cards.find(HOST, signal);
    assert.deepEqual([at.url, at.dialect, at.binding], [`${HOST}/a2a`, "0.3", "JSONRPC"]);
  });

  it("is guessed to be the address itself when there is no card", async () => {
    const { cards } = hostWith({ [`${HOST}/rpc`]: { 不是: "名片" } });
    const { url, dialect, otherDialect } = await cards.find(RPC.url, signal);
    assert.deepEqual([url, dialect, otherDialect], [RPC.url, "0.3", "1.0"]);
  });

  it("is none that the relay cannot call, and none over http when the card came over https", async () => {
    const open = { ...RPC, url: "http://agent.example/rpc" };
    const grpc = { url: "agent.example:443", protocolBinding: "GRPC", protocolVersion: "1.0" };
    for (const one of [open, grpc, { ...RPC, protocolVersion: "9.0" }]) {
      const { cards } = hostWith({ [`${HOST}/.well-known/agent-card.json`]: { supportedInterfaces: [one] } });
      await assert.rejects(cards.find(HOST, signal), {
        kind: "refused",
        reason: /neither JSON-RPC nor HTTP\+JSON/,
      });
    }
  });

  it("is not guessed while its host fails", async () => {
    const { cards, outside } = hostWith({});
    outside.receiver = () => anAnswer(502);
    await assert.rejects(cards.find(HOST, signal), { kind: "failed" });
    outside.receiver = () => {
      throw new OutboundFailure("timeout", "too late", { mayHaveArrived: true });
    };
    await assert.rejects(cards.find(HOST, signal), { kind: "failed" });
  });
});

describe("a cached card", () => {
  const CARD_URL = `${HOST}/.well-known/agent-card.json`;

  it("is used for some minutes, and then revalidated", async () => {
    const { cards, clock, asked, outside } = hostWith({ [CARD_URL]: { supportedInterfaces: [RPC] } });
    await cards.find(HOST, signal);
    clock.advance(299_999);
    await cards.find(HOST, signal);
    assert.deepEqual(asked(), [CARD_URL]);
    clock.advance(1);
    assert.equal((await cards.find(HOST, signal)).url, RPC.url);
    assert.equal(outside.last.headers["if-none-match"], '"一"');
    clock.advance(299_999);
    await cards.find(HOST, signal);
    assert.equal(asked().length, 2);
  });

  it("is searched again when it is gone, and when it was wrong", async () => {
    const found: Record<string, object> = { [CARD_URL]: { supportedInterfaces: [RPC] } };
    const { cards, clock } = hostWith(found);
    await cards.find(HOST, signal);
    delete found[CARD_URL];
    found[`${HOST}/.well-known/agent.json`] = { url: `${HOST}/new` };
    clock.advance(300_000);
    assert.equal((await cards.find(HOST, signal)).url, `${HOST}/new`);
    found[CARD_URL] = { supportedInterfaces: [RPC] };
    assert.equal((await cards.find(HOST, signal)).url, `${HOST}/new`);
    cards.forget(HOST);
    assert.equal((await cards.find(HOST, signal)).url, RPC.url);
  });
});
