import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AgentCard as SdkCard } from "@a2a-js/sdk";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import type { AgentCard } from "@a2a-relay/protocol";
import {
  type CallOptions,
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";

const ROOT_KEY = "the-operators-own-key-0123456789";
const OF_ZHIWEI = "/agents/zhiwei/.well-known";

function says(version: string): CallOptions {
  return { headers: { "a2a-version": version } };
}

function cardIn({ status, text }: HttpAnswer): AgentCard {
  assert.equal(status, 200, text);
  return JSON.parse(text) as AgentCard;
}

/** In which version of A2A the card is written. */
function shapeOf(answer: HttpAnswer): string {
  const card = cardIn(answer);
  assert.equal("supportedInterfaces" in card, !("url" in card));
  return "supportedInterfaces" in card ? "1.0" : "0.3";
}

function urlsOf(card: AgentCard): readonly string[] {
  return (card["supportedInterfaces"] as readonly { readonly url: string }[]).map(({ url }) => url);
}

/** A relay with keys: nothing is sent along unless a test says so. */
function keyedRelay(): Promise<HttpRelay> {
  const headers = { authorization: `Bearer ${ROOT_KEY}` };
  return openHttpRelay({ env: { A2A_RELAY_API_KEY: ROOT_KEY }, headers });
}

const NO_KEY: CallOptions = { headers: { authorization: "" } };

function withKey(key: string): CallOptions {
  return { headers: { authorization: `Bearer ${key}` } };
}

describe("cards over HTTP", () => {
  it("are written in the version that the caller says, else in that of the path", async () => {
    await using relay = await openHttpRelay();
    for (const base of ["/.well-known", OF_ZHIWEI, "/agents/relay/.well-known"]) {
      for (const [file, unsaid] of [
        ["agent-card.json", "1.0"],
        ["agent.json", "0.3"],
        ["a2a-agent-card", "1.0"],
      ] as const) {
        const path = `${base}/${file}`;
        assert.equal(shapeOf(await relay.get(path)), unsaid, path);
        assert.equal(shapeOf(await relay.get(path, says("1.0"))), "1.0", path);
        assert.equal(shapeOf(await relay.get(path, says("1.0.1"))), "1.0", path);
        assert.equal(shapeOf(await relay.get(path, says("0.3"))), "0.3", path);
        assert.equal(shapeOf(await relay.get(`${path}?A2A-Version=0.3`)), "0.3", path);
        await relay.refused(
          relay.get(path, says("9.9")),
          "invalid_argument",
          /9\.9 is not served here; 1\.0, 0\.3/,
        );
      }
    }
  });

  it("are of 0.3 for callers who say nothing, where the relay is configured so", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_CARD_DIALECT: "0.3" } });
    for (const base of ["/.well-known", OF_ZHIWEI]) {
      for (const file of ["agent-card.json", "agent.json", "a2a-agent-card"]) {
        assert.equal(shapeOf(await relay.get(`${base}/${file}`)), "0.3");
        assert.equal(shapeOf(await relay.get(`${base}/${file}`, says("1.0"))), "1.0");
      }
    }
  });

  it("may be cached, and are not sent again to a caller that has them", async () => {
    await using relay = await openHttpRelay();
    for (const path of [
      "/.well-known/agent-card.json",
      `${OF_ZHIWEI}/agent-card.json`,
      "/agents/zhiwei/card",
    ]) {
      const { headers, text } = await relay.get(path);
      const etag = headers.etag ?? "";
      assert.match(etag, /^"[\w-]{43}"$/);
      assert.equal(headers["cache-control"], "public, max-age=60, must-revalidate");
      assert.equal(headers["content-type"], "application/json; charset=utf-8");
      assert.equal(headers.vary, "a2a-version, authorization");
      const changedAtMs = Date.parse(headers["last-modified"] ?? "");
      assert.ok(changedAtMs <= Date.now() && changedAtMs > Date.now() - 60_000, headers["last-modified"]);
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
        const again = await relay.get(path, { headers: { "if-none-match": known } });
        assert.deepEqual([again.status, again.text, again.headers.etag], [304, "", etag], known);
        assert.equal(again.headers["cache-control"], headers["cache-control"]);
      }
      assert.equal((await relay.get(path, { headers: { "if-none-match": '"other"' } })).text, text);
      const head = await relay.call("HEAD", path);
      assert.deepEqual([head.status, head.headers.etag], [200, etag]);
    }
  });

  it("have another tag in another version, and when the agent says something else of itself", async () => {
    await using relay = await openHttpRelay();
    const path = `${OF_ZHIWEI}/agent-card.json`;
    const etagOf = async (options?: CallOptions): Promise<unknown> =>
      (await relay.get(path, options)).headers.etag;
    const before = await etagOf();
    assert.notEqual(await etagOf(says("0.3")), before);
    await relay.post("/agents/register", { agent_id: ZHIWEI, card: { description: "翻译合同" } });
    assert.notEqual(await etagOf(), before);
  });

  it("say to a page of another origin that they vary by it too", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_ALLOWED_ORIGINS: "https://app.example" } });
    const { headers } = await relay.get("/.well-known/agent-card.json", {
      headers: { origin: "https://app.example" },
    });
    assert.equal(headers.vary, "origin, a2a-version, authorization");
  });

  it("lead to the relay, in any script, and to the agent itself only where it allows that", async () => {
    await using relay = await openHttpRelay();
    const agent_id = "知微@机器";
    const card = {
      name: "知微",
      url: "http://10.0.0.7/a2a",
      "x-own": null,
      signatures: [{ protected: "e30" }],
    };
    await relay.post("/agents/register", { agent_id, card });
    const base = `/agents/${encodeURIComponent(agent_id)}`;
    const own = `${relay.url}/agents/%E7%9F%A5%E5%BE%AE@%E6%9C%BA%E5%99%A8/a2a`;
    const served = cardIn(await relay.get(`${base}/.well-known/agent-card.json`));
    assert.equal(served["name"], "知微");
    assert.deepEqual(urlsOf(served), [own, own, own, own]);
    assert.deepEqual((await relay.get(base)).json.agent_id, agent_id);
    const { agent_card } = (await relay.get(base)).json as unknown as { readonly agent_card: AgentCard };
    assert.deepEqual(agent_card, served);
    await relay.post("/agents/register", { agent_id, direct: true });
    assert.deepEqual(urlsOf(cardIn(await relay.get(`${base}/.well-known/agent-card.json`))).slice(4), [
      card.url,
    ]);
    const older = cardIn(await relay.get(`${base}/.well-known/agent.json`));
    assert.deepEqual([older["url"], older["protocolVersion"]], [own, "0.3.0"]);
    assert.deepEqual(cardIn(await relay.get(`${base}/card`)), card);
  });

  it("are for everybody in the default tenant, also where keys are in force", async () => {
    await using relay = await keyedRelay();
    for (const name of [LULU, "relay"]) {
      const answer = await relay.get(`/agents/${name}/.well-known/agent-card.json`, NO_KEY);
      assert.deepEqual(cardIn(answer)["securityRequirements"], [{ schemes: { relayKey: { list: [] } } }]);
    }
    assert.deepEqual(cardIn(await relay.get("/agents/lulu/card", NO_KEY)), {});
    assert.equal(shapeOf(await relay.get("/.well-known/agent.json", NO_KEY)), "0.3");
    await relay.refused(relay.get("/agents/missing/.well-known/agent-card.json", NO_KEY), "unknown_agent");
    await relay.refused(relay.get("/agents/missing/card", NO_KEY), "unknown_agent");
  });

  it("are of the tenant of the key that is shown, which is checked", async () => {
    await using relay = await keyedRelay();
    const { json } = await relay.post("/keys", { tenant: "acme" });
    const acme = withKey(json.key);
    await relay.post("/agents/register", { agent_id: "kames", card: { name: "acme 的" } }, acme);
    const path = "/agents/kames/.well-known/agent-card.json";
    const answer = await relay.get(path, acme);
    const url = `${relay.url}/t/acme/agents/kames/a2a`;
    assert.deepEqual(urlsOf(cardIn(answer)), [url, url, url, url]);
    assert.equal(answer.headers["cache-control"], "private, max-age=60, must-revalidate");
    assert.equal((await relay.get(`/t/acme${path}`, acme)).text, answer.text);
    await relay.refused(relay.get(path, NO_KEY), "unknown_agent");
    await relay.refused(relay.get(`/t/acme${path}`, NO_KEY), "unauthenticated");
    await relay.refused(relay.get("/t/acme/agents/kames/card", NO_KEY), "unauthenticated");
    await relay.refused(relay.get(path, withKey("wrong-key-0123456789")), "unauthenticated");
    await relay.refused(relay.get("/t/default/agents/lulu/card", acme), "permission_denied");
    const limited = await relay.post("/keys", { agent_id: LULU, verbs: ["threads.read"] });
    const ofLulu = "/agents/lulu/.well-known/agent-card.json";
    await relay.refused(relay.get(ofLulu, withKey(limited.json.key)), "permission_denied");
  });

  it("of the relay have the addresses of the tenant whose path is asked, and tell nothing of it", async () => {
    await using relay = await keyedRelay();
    const card = cardIn(await relay.get("/t/nowhere/.well-known/agent-card.json", NO_KEY));
    assert.equal(urlsOf(card)[0], `${relay.url}/t/nowhere/a2a`);
    assert.equal(
      urlsOf(cardIn(await relay.get("/.well-known/agent-card.json", NO_KEY)))[0],
      `${relay.url}/a2a`,
    );
    await relay.refused(relay.get("/t/a%20b/.well-known/agent-card.json", NO_KEY), "invalid_argument");
  });

  it("that name interfaces which are not to be shown are as written only for their owner", async () => {
    await using relay = await keyedRelay();
    await relay.post("/agents/register", { agent_id: ZHIWEI, card: { url: "http://10.0.0.7/a2a" } });
    const lulu = await relay.post("/keys", { agent_id: LULU });
    const zhiwei = await relay.post("/keys", { agent_id: ZHIWEI });
    await relay.refused(relay.get("/agents/zhiwei/card", NO_KEY), "unauthenticated");
    await relay.refused(relay.get("/agents/zhiwei/card", withKey(lulu.json.key)), "permission_denied");
    const answer = await relay.get("/agents/zhiwei/card", withKey(zhiwei.json.key));
    assert.deepEqual(cardIn(answer), { url: "http://10.0.0.7/a2a" });
  });
});

describe("the official SDK", () => {
  it("finds and reads the card of the relay and of every agent", async () => {
    await using relay = await openHttpRelay();
    const agent_id = "知微@机器";
    await relay.post("/agents/register", { agent_id, display_name: "知微" });
    const resolver = new DefaultAgentCardResolver();
    const ofRelay = await resolver.resolve(`${relay.url}/`);
    assert.deepEqual(
      ofRelay.skills.map(({ id }) => id),
      ["route-message", "find-agents"],
    );
    const base = `${relay.url}/agents/${encodeURIComponent(agent_id)}/`;
    const ofAgent = await resolver.resolve(base, ".well-known/agent-card.json");
    assert.equal(ofAgent.name, "知微");
    const read = SdkCard.fromJSON(ofAgent);
    assert.equal(
      read.supportedInterfaces[0]?.url,
      `${relay.url}/agents/%E7%9F%A5%E5%BE%AE@%E6%9C%BA%E5%99%A8/a2a`,
    );
    assert.equal(read.capabilities?.extensions.length, 3);
  });

  it("reads both shapes when it speaks 0.3", async () => {
    await using relay = await openHttpRelay();
    const resolver = new DefaultAgentCardResolver({ legacyCompat: { enabled: true } });
    const own = `${relay.url}/agents/${ZHIWEI}/a2a`;
    const card = await resolver.resolve(`${relay.url}/agents/zhiwei/`, ".well-known/agent-card.json");
    const fetchOlder: typeof fetch = (url) => fetch(url);
    const older = await new DefaultAgentCardResolver({
      legacyCompat: { enabled: true },
      fetchImpl: fetchOlder,
    }).resolve(`${relay.url}/agents/zhiwei/`, ".well-known/agent.json");
    for (const { supportedInterfaces } of [card, older]) {
      const versions = supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) =>
        [protocolBinding, protocolVersion, url].join(" "),
      );
      assert.ok(
        versions.some((version) => version.startsWith("JSONRPC 0.3") && version.endsWith(own)),
        versions.join(),
      );
    }
  });
});
