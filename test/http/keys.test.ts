import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type AnswerBody,
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";

const ROOT_KEY = "0123456789abcdef0123456789abcdef";
const KEY = /^key_[0-9a-f-]{36}\.[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** A relay that asks for keys; calls without another one are made by its operator. */
function openKeyedRelay(env: Readonly<Record<string, string>> = {}): Promise<HttpRelay> {
  const headers = { authorization: `Bearer ${ROOT_KEY}` };
  return openHttpRelay({ env: { A2A_RELAY_API_KEY: ROOT_KEY, ...env }, headers });
}

function bodyOf(answer: HttpAnswer, status: number): AnswerBody {
  assert.equal(answer.status, status, answer.text);
  return answer.json;
}

async function createKey(relay: HttpRelay, body: object = {}): Promise<AnswerBody> {
  return bodyOf(await relay.post("/keys", body), 201);
}

function as(key: string) {
  return { headers: { authorization: `Bearer ${key}` } };
}

/** Registers an agent with whatever key, and answers with the agent's own. */
async function register(relay: HttpRelay, key: string, agent_id: string): Promise<string> {
  const { status, json, text } = await relay.post("/agents/register", { agent_id }, as(key));
  assert.equal(status, 201, text);
  assert.match(json.api_key ?? "", KEY);
  return json.api_key ?? "";
}

describe("keys over HTTP", () => {
  it("are made, listed, rotated and revoked", async () => {
    await using relay = await openKeyedRelay();
    const made = await createKey(relay, { agent_id: LULU, verbs: ["mailbox.read", "keys.write"] });
    assert.match(made.key, KEY);
    assert.deepEqual([made.tenant, made.agent_id, made.state], ["default", LULU, "active"]);
    assert.equal((await relay.get(`/mailbox/${LULU}`, as(made.key))).status, 200);
    const listed = await relay.get(`/keys?agent=${LULU}&limit=500`);
    assert.ok(bodyOf(listed, 200).keys.some(({ key_id }) => key_id === made.key_id));
    assert.ok(!listed.text.includes(made.key.split(".")[1] ?? ""));
    const own = await relay.post(`/keys/${made.key_id}/rotate`, undefined, as(made.key));
    const rotated = bodyOf(own, 201);
    assert.deepEqual([rotated.old_key_id, rotated.verbs], [made.key_id, made.verbs]);
    for (const { key } of [made, rotated]) {
      assert.equal((await relay.get(`/mailbox/${LULU}`, as(key))).status, 200);
    }
    const revoked = await relay.post(`/keys/${made.key_id}/revoke`);
    assert.equal(bodyOf(revoked, 200).state, "revoked");
    await relay.refused(relay.get(`/mailbox/${LULU}`, as(made.key)), "unauthenticated", /was revoked at/);
    assert.equal((await relay.call("DELETE", `/keys/${rotated.key_id}`)).status, 200);
    await relay.refused(relay.get(`/mailbox/${LULU}`, as(rotated.key)), "unauthenticated");
    await relay.refused(relay.call("DELETE", `/keys/${rotated.key_id}`), "wrong_state");
    await relay.refused(relay.post("/keys/key_nowhere/revoke"), "not_found");
    await relay.refused(
      relay.post("/keys", { verbs: ["fly"] }),
      "invalid_argument",
      /known are agents\.read/,
    );
  });

  it("let an agent send, read and answer only as itself", async () => {
    await using relay = await openKeyedRelay();
    const lulu = await createKey(relay, { agent_id: LULU });
    const zhiwei = await createKey(relay, { agent_id: ZHIWEI });
    const message = { to: ZHIWEI, body: "知微你好", type: "request" };
    await relay.refused(
      relay.post("/messages", { ...message, from: ZHIWEI }, as(lulu.key)),
      "permission_denied",
    );
    const sent = await relay.post("/messages", message, as(lulu.key));
    assert.equal(sent.status, 201, "the sender follows from the key");
    const { task_id, message_id } = sent.json.receipt;
    await relay.refused(relay.get(`/mailbox/${ZHIWEI}`, as(lulu.key)), "permission_denied");
    await relay.refused(
      relay.post(`/tasks/${task_id}/complete`, { text: "x" }, as(lulu.key)),
      "permission_denied",
    );
    const kames = await register(relay, ROOT_KEY, "kames@桌面");
    await relay.refused(relay.get(`/messages/${message_id}`, as(kames)), "not_found");
    await relay.refused(relay.get(`/tasks/${task_id}`, as(kames)), "not_found");
    assert.equal((await relay.get(`/messages/${message_id}`, as(zhiwei.key))).status, 200);
    const done = await relay.post(`/tasks/${task_id}/complete`, { text: "好" }, as(zhiwei.key));
    assert.equal(done.status, 200, done.text);
    for (const path of [
      "/events",
      "/threads",
      "/queue",
      "/metrics",
      "/keys",
      "/tenants",
      "/journal/verify",
    ]) {
      await relay.refused(relay.get(path, as(kames)), "permission_denied");
    }
    const { events } = (await relay.get("/events?type=access.denied&limit=500")).json;
    assert.equal(events.length, 3 + 2 + 7);
    assert.ok(events.every(({ data }) => String(data["key_id"]).startsWith("key_")));
  });

  it("with few verbs are for those alone", async () => {
    await using relay = await openKeyedRelay();
    const { key } = await createKey(relay, { verbs: ["agents.read", "events.read"] });
    assert.equal((await relay.get("/agents", as(key))).status, 200);
    assert.equal((await relay.get("/events", as(key))).status, 200);
    await relay.refused(relay.get("/queue", as(key)), "permission_denied", /may not be used for queue\.read/);
    await relay.refused(relay.post("/keys", {}, as(key)), "permission_denied");
  });

  it("of an agent end with its registration, and only an operator brings it back", async () => {
    await using relay = await openKeyedRelay();
    const kames = await register(relay, ROOT_KEY, "kames@桌面");
    assert.equal(
      (await relay.call("DELETE", "/agents/kames@%E6%A1%8C%E9%9D%A2", undefined, as(kames))).status,
      200,
    );
    await relay.refused(relay.get("/agents", as(kames)), "unauthenticated");
    const again = await register(relay, ROOT_KEY, "kames@桌面");
    assert.equal((await relay.get("/agents", as(again))).status, 200);
  });

  it("may be handed to an agent that is not registered yet", async () => {
    await using relay = await openKeyedRelay();
    const { key } = await createKey(relay, { agent_id: "kames@桌面" });
    await relay.refused(
      relay.post("/agents/register", { agent_id: "nina@desk" }, as(key)),
      "permission_denied",
      /kames@桌面 may not use agents\.write for nina@desk/,
    );
    const own = await register(relay, key, "kames@桌面");
    const { json } = await relay.get("/agents/kames@%E6%A1%8C%E9%9D%A2", as(own));
    assert.deepEqual([json.custodial, typeof json.pubkey_b58], [true, "string"]);
  });
});

describe("a call without a key that is known", () => {
  it("is 401, on record, and tells nothing of the keys there are", async () => {
    await using relay = await openKeyedRelay();
    const { key_id } = await createKey(relay);
    const wrong = `${key_id}.${"2".repeat(43)}`;
    const tries = ["", "Basic bHVsdTpsdWx1", "Bearer", "Bearer a b", "Bearer x", `Bearer ${wrong}`];
    for (const authorization of tries) {
      const answer = await relay.get("/agents", { headers: { authorization } });
      await relay.refused(Promise.resolve(answer), "unauthenticated");
      assert.equal(answer.headers["www-authenticate"], "Bearer");
    }
    const { events } = (await relay.get("/events?type=access.unauthenticated")).json;
    assert.deepEqual(
      events.map(({ data }) => [data["reason"], data["transport"], data["key_id"]]),
      [
        ["scheme", "http", undefined],
        ["scheme", "http", undefined],
        ["malformed", "http", undefined],
        ["malformed", "http", undefined],
        ["unknown", "http", undefined],
        ["unknown", "http", key_id],
      ],
    );
    assert.equal((await relay.get("/journal/verify")).json.ok, true);
  });

  it("is the operator's under local trust, unless it shows one that opens nothing", async () => {
    await using relay = await openHttpRelay();
    assert.equal((await relay.get("/tenants")).status, 200);
    await relay.refused(relay.get("/agents", as("x")), "unauthenticated");
    await relay.refused(
      relay.get("/agents", { headers: { authorization: "Basic eA==" } }),
      "unauthenticated",
    );
    const { key } = await createKey(relay, { agent_id: LULU });
    assert.equal((await relay.get(`/mailbox/${LULU}`, as(key))).status, 200);
    await relay.refused(relay.get(`/mailbox/${ZHIWEI}`, as(key)), "permission_denied");
    assert.equal((await relay.get("/health", as("x"))).status, 200);
  });
});

/** Two organisations with agents of the same ids, and one message and one task in each. */
async function openTwoTenants(): Promise<{ relay: HttpRelay; acme: string; studio: string }> {
  const relay = await openKeyedRelay();
  const acme = (await createKey(relay, { tenant: "acme" })).key;
  const studio = (await createKey(relay, { tenant: "工作室" })).key;
  for (const [key, words] of [
    [acme, "acme's own"],
    [studio, "工作室自己的"],
  ] as const) {
    for (const agent_id of [LULU, ZHIWEI]) await register(relay, key, agent_id);
    const message = { from: LULU, to: ZHIWEI, body: words, subject: words, thread_id: "t1", type: "request" };
    assert.equal((await relay.post("/messages", message, as(key))).status, 201);
  }
  return { relay, acme, studio };
}

describe("two tenants with agents of the same ids", () => {
  it("see nothing of each other, whatever they read", async () => {
    const { relay, acme, studio } = await openTwoTenants();
    await using _ = relay;
    const paths = [
      "/agents",
      `/mailbox/${ZHIWEI}?peek=true`,
      "/events?limit=500",
      "/threads",
      "/threads/t1",
      `/tasks?agent=${ZHIWEI}`,
      "/queue",
      "/keys",
      "/tenants",
      "/metrics",
    ];
    for (const path of paths) {
      const [own, others] = [await relay.get(path, as(acme)), await relay.get(path, as(studio))];
      assert.deepEqual([own.status, others.status], [200, 200], path);
      assert.doesNotMatch(own.text, /工作室/, path);
      assert.doesNotMatch(others.text, /acme/, path);
      assert.notEqual(own.text, others.text, path);
    }
    const { items, total } = (await relay.get("/agents", as(acme))).json;
    assert.deepEqual([items.length, total], [2, 2]);
    const { messages } = (await relay.get(`/mailbox/${ZHIWEI}?peek=true`, as(acme))).json;
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["acme's own"],
    );
    assert.equal((await relay.get("/journal/verify", as(acme))).json.ok, true);
  });

  it("cannot reach each other's messages, tasks and keys by their ids", async () => {
    const { relay, acme, studio } = await openTwoTenants();
    await using _ = relay;
    const [item] = (await relay.get(`/mailbox/${ZHIWEI}?peek=true`, as(studio))).json.messages;
    const { keys } = (await relay.get("/keys", as(studio))).json;
    assert.ok(item);
    await relay.refused(relay.get(`/messages/${item.message_id}`, as(acme)), "not_found");
    await relay.refused(relay.get(`/tasks/${item.task_id}`, as(acme)), "not_found");
    await relay.refused(relay.post(`/tasks/${item.task_id}/cancel`, {}, as(acme)), "not_found");
    await relay.refused(relay.call("DELETE", `/keys/${keys[0]?.key_id}`, undefined, as(acme)), "not_found");
    for (const tenant of ["工作室", "nowhere", "default"]) {
      await relay.refused(relay.post("/keys", { tenant }, as(acme)), "permission_denied");
      const path = `/tenants/${encodeURIComponent(tenant)}`;
      await relay.refused(relay.post(path, { capabilities: "on" }, as(acme)), "permission_denied");
    }
  });

  it("have their own metrics; those of the process are for its operator", async () => {
    const { relay, acme } = await openTwoTenants();
    await using _ = relay;
    const own = (await relay.get("/metrics", as(acme))).text;
    assert.match(own, /a2a_relay_open_deliveries\{tenant="acme",state="available"\} 1/);
    assert.doesNotMatch(own, /requests_total|memory|seconds/);
    const all = (await relay.get("/metrics")).text;
    for (const tenant of ["acme", "工作室"]) {
      assert.ok(all.includes(`a2a_relay_open_deliveries{tenant="${tenant}",state="available"} 1`), all);
    }
    assert.match(all, /a2a_relay_resident_memory_bytes \d/);
    const entered = (await relay.get("/t/acme/metrics")).text;
    assert.equal(entered, own);
  });
});

describe("a path under /t/{tenant}", () => {
  it("lets the operator of the relay act in that tenant", async () => {
    const { relay, acme } = await openTwoTenants();
    await using _ = relay;
    const studio = encodeURIComponent("工作室");
    const { messages } = (await relay.get(`/t/${studio}/mailbox/${ZHIWEI}?peek=true`)).json;
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["工作室自己的"],
    );
    assert.equal((await relay.post("/t/acme/agents/register", { agent_id: "kames@desk" })).status, 201);
    assert.equal((await relay.get("/agents/kames@desk", as(acme))).status, 200);
    await relay.refused(relay.get("/agents/kames@desk"), "unknown_agent");
    assert.equal(bodyOf(await relay.post("/t/acme/keys", {}), 201).tenant, "acme");
    const { tenants } = bodyOf(await relay.get("/tenants"), 200);
    assert.deepEqual(
      tenants.map(({ tenant }) => tenant),
      ["acme", "default", "工作室"],
    );
    await relay.refused(relay.get("/t/nowhere/agents"), "not_found", /first key/);
    await relay.refused(relay.get("/t/a%2Fb/agents"), "not_found");
    await relay.refused(relay.get("/t/acme/nothing"), "not_found", /no GET \/nothing/);
    assert.match((await relay.get("/t/acme")).headers["content-type"] ?? "", /^text\/html/);
  });

  it("is open to a key of that tenant and to no other, which learns nothing about it", async () => {
    const { relay, acme } = await openTwoTenants();
    await using _ = relay;
    assert.equal((await relay.get("/t/acme/agents", as(acme))).status, 200);
    const messages = [];
    for (const tenant of [encodeURIComponent("工作室"), "nowhere", "default"]) {
      const refusal = await relay.refused(relay.get(`/t/${tenant}/agents`, as(acme)), "permission_denied");
      messages.push(refusal.message);
    }
    assert.equal(new Set(messages).size, 1);
    const { events } = (await relay.get("/events?type=access.denied", as(acme))).json;
    assert.deepEqual(
      events.map(({ data }) => data["tenant"]),
      ["工作室", "nowhere", "default"],
    );
    await relay.refused(relay.get("/t/acme/agents", as("x")), "unauthenticated");
    assert.equal((await relay.get("/t/nowhere/health", as("x"))).status, 200);
  });

  it("exists under local trust too", async () => {
    await using relay = await openHttpRelay();
    const { key } = await createKey(relay, { tenant: "acme" });
    await register(relay, key, "kames@desk");
    const { items } = (await relay.get("/t/acme/agents")).json;
    assert.deepEqual(
      items.map(({ agent_id }) => agent_id),
      ["kames@desk"],
    );
    assert.equal((await relay.get("/t/default/agents")).json.items.length, 2);
  });
});

describe("the switch for capabilities", () => {
  it("is the configuration's for the default tenant, and an operator's for others", async () => {
    await using relay = await openKeyedRelay({ A2A_RELAY_CAPABILITIES: "on" });
    const { key } = await createKey(relay, { tenant: "acme" });
    const switched = await relay.post("/tenants/acme", { capabilities: "on" }, as(key));
    assert.equal(switched.status, 200, switched.text);
    const { tenants } = bodyOf(await relay.get("/tenants"), 200);
    assert.deepEqual(
      tenants.map(({ tenant, capabilities }) => [tenant, capabilities]),
      [
        ["acme", "on"],
        ["default", "on"],
      ],
    );
    await relay.refused(relay.post("/tenants/default", { capabilities: "off" }), "wrong_state");
  });
});
