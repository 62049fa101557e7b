import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import type {
  CapabilitiesResponse,
  CapabilityRevoked,
  CapabilityUsageResponse,
  CapabilityView,
  EventView,
} from "@a2a-relay/protocol";
import { loadConfig, startRelay } from "a2a-relay";
import {
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";
import { refused } from "../../packages/relay/testing/refusal.ts";

const ROOT_KEY = "0123456789abcdef0123456789abcdef";
const KAMES = "kames@desk";
const SEND = `a2a.send.${ZHIWEI}`;
const RECV = `a2a.recv.${LULU}`;
const RESPOND = `a2a.respond.${LULU}`;

/** A relay that asks for keys and capabilities, and the keys of three agents. */
class GatedRelay implements AsyncDisposable {
  readonly http: HttpRelay;
  readonly #keys = new Map<string, string>();

  private constructor(http: HttpRelay) {
    this.http = http;
  }

  static async open(): Promise<GatedRelay> {
    const env = { A2A_RELAY_API_KEY: ROOT_KEY, A2A_RELAY_CAPABILITIES: "on" };
    const gated = new GatedRelay(await openHttpRelay({ env, headers: bearer(ROOT_KEY) }));
    await gated.http.post("/agents/register", { agent_id: KAMES });
    for (const agent_id of [LULU, ZHIWEI, KAMES]) {
      const { json } = await gated.http.post("/keys", { agent_id });
      gated.#keys.set(agent_id, (json as unknown as { readonly key: string }).key);
    }
    return gated;
  }

  /** As this agent. */
  as(agent: string, method: "GET" | "POST", path: string, body?: object): Promise<HttpAnswer> {
    return this.http.call(method, path, body, { headers: bearer(this.#keys.get(agent) ?? "") });
  }

  async grant(subject: string, action: string, more: object = {}): Promise<CapabilityView> {
    const answer = await this.http.post("/capabilities/grant", { subject, action, ...more });
    return bodyOf(answer, 201) as CapabilityView;
  }

  ask(message: object = {}): Promise<HttpAnswer> {
    return this.as(LULU, "POST", "/messages", { to: ZHIWEI, type: "request", body: "帮我看看", ...message });
  }

  async checks(): Promise<readonly EventView[]> {
    return (await this.http.get("/events?type=capability_check&limit=500")).json.events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.http[Symbol.asyncDispose]();
  }
}

function bearer(key: string): { readonly authorization: string } {
  return { authorization: `Bearer ${key}` };
}

/** The body of an answer of this status; a test knows which route it asked. */
function bodyOf(answer: HttpAnswer, status: number): unknown {
  assert.equal(answer.status, status, answer.text);
  return answer.json;
}

describe("capabilities over HTTP", () => {
  it("are granted, listed, used and revoked", async () => {
    await using relay = await GatedRelay.open();
    const send = await relay.grant("lulu", "a2a.send.zhiwei", { scope: { version: 1, max_uses: 2 } });
    await relay.grant("zhiwei", "a2a.recv.lulu", { expires_at: "2099-01-01T00:00:00Z" });
    assert.deepEqual([send.subject, send.domain], [LULU, "a2a-relay.capability.v1"]);
    const agent = (await relay.http.get(`/agents/${ZHIWEI}`)).json as unknown as {
      readonly pubkey_b58: string;
    };
    assert.equal(send.action, `a2a.send.${agent.pubkey_b58}`);
    assert.equal((await relay.ask()).status, 201);
    const usage = bodyOf(await relay.as(LULU, "GET", "/capabilities/usage"), 200) as CapabilityUsageResponse;
    assert.deepEqual(
      usage.grants.map(({ id, effective, budget }) => [id, effective, budget]),
      [[send.id, true, { max_uses: 2, used: 1, remaining: 1 }]],
    );
    const own = await relay.as(ZHIWEI, "POST", "/capabilities/revoke", { id: send.id });
    assert.equal(own.status, 404);
    const revoke = async (): Promise<CapabilityRevoked> =>
      bodyOf(await relay.as(LULU, "POST", "/capabilities/revoke", { id: send.id }), 200) as CapabilityRevoked;
    assert.deepEqual(await revoke(), { id: send.id, revoked: true });
    assert.deepEqual(await revoke(), { id: send.id, revoked: false });
    await relay.http.refused(relay.ask(), "permission_denied", /requires capability "a2a\.send\./);
    const all = bodyOf(await relay.http.get("/capabilities?limit=1"), 200) as CapabilitiesResponse;
    assert.deepEqual([all.capabilities.length, all.pageToken], [1, all.capabilities[0]?.id]);
  });

  it("are not for oneself, nor beyond what one may pass on", async () => {
    await using relay = await GatedRelay.open();
    const grant = (by: string, subject: string, scope: object = {}): Promise<HttpAnswer> =>
      relay.as(by, "POST", "/capabilities/grant", { subject, action: SEND, scope });
    await relay.http.refused(grant(LULU, LULU), "permission_denied");
    await relay.http.refused(grant(LULU, KAMES), "permission_denied");
    await relay.grant(LULU, SEND, { scope: { delegable: true, max_uses: 1 } });
    await relay.http.refused(grant(LULU, LULU, { max_uses: 1 }), "permission_denied", /to itself/);
    await relay.http.refused(grant(LULU, KAMES, { max_uses: 2 }), "permission_denied", /max_uses/);
    assert.equal((await grant(LULU, KAMES, { max_uses: 1 })).status, 201);
  });

  it("are asked for by whatever answers a task, and by nothing else", async () => {
    await using relay = await GatedRelay.open();
    await relay.grant(LULU, SEND);
    await relay.grant(ZHIWEI, RECV);
    const acts: readonly (readonly [verb: string, body: object])[] = [
      ["status", { state: "working" }],
      ["artifacts", { artifact: { parts: [{ kind: "text", text: "月亮" }] } }],
      ["complete", { text: "好了" }],
      ["fail", { reason: "不行" }],
      ["reject", { reason: "不行" }],
    ];
    for (const [verb, body] of acts) {
      const { receipt } = (await relay.ask()).json;
      const path = `/tasks/${receipt.task_id}/${verb}`;
      const error = await relay.http.refused(
        relay.as(ZHIWEI, "POST", path, body),
        "permission_denied",
        /requires capability "a2a\.respond\.lulu@kamac"/,
      );
      assert.deepEqual(error.details, { required: [RESPOND], missing: [RESPOND] });
      const { id } = await relay.grant(ZHIWEI, RESPOND);
      assert.equal((await relay.as(ZHIWEI, "POST", path, body)).status, 200);
      await relay.http.post("/capabilities/revoke", { id });
    }
    const { receipt } = (await relay.ask()).json;
    const reply = { to: LULU, type: "reply", reply_to: receipt.message_id, body: "好" };
    await relay.http.refused(relay.as(ZHIWEI, "POST", "/messages", reply), "permission_denied");
    const note = await relay.as(KAMES, "POST", "/messages", { to: ZHIWEI, body: "便条" });
    assert.equal(note.status, 201);
    const last = (await relay.checks()).at(-1);
    assert.deepEqual(
      [last?.actor, last?.data["agent_id"], last?.data["passed"]],
      [ZHIWEI, `a2a-respond:${receipt.task_id}`, false],
    );
  });

  it("let an agent repair its own stuck work", async () => {
    await using relay = await GatedRelay.open();
    await relay.grant(LULU, SEND);
    await relay.grant(ZHIWEI, RECV);
    const { receipt } = (await relay.ask()).json;
    await relay.http.lease();
    const command = { action: "requeue", duplicate_risk: "idempotent" };
    const repair = (agent: string): Promise<HttpAnswer> =>
      relay.as(agent, "POST", "/repair", { task_id: receipt.task_id, reason: "卡住了", command });
    await relay.http.refused(repair(LULU), "permission_denied", /a2a\.repair\.requeue/);
    for (const agent of [LULU, KAMES]) await relay.grant(agent, "a2a.repair.requeue");
    await relay.http.refused(repair(KAMES), "not_found", /is not visible to the authenticated peer/);
    assert.equal((await repair(LULU)).json.action, "requeued");
  });

  it("with few uses are not overspent by many requests at once", async () => {
    await using relay = await GatedRelay.open();
    await relay.grant(ZHIWEI, RECV);
    await relay.grant(LULU, SEND, { scope: { max_uses: 20 } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => relay.ask()));
    const counted = Object.groupBy(answers, ({ status }) => status);
    assert.deepEqual([counted[201]?.length, counted[403]?.length], [20, 30]);
    const checks = await relay.checks();
    assert.deepEqual([checks.length, checks.filter(({ data }) => data["passed"] === true).length], [50, 20]);
  });
});

describe("the relay's key", () => {
  /** A relay on this data directory, for as long as `act` takes. */
  async function onRelay<Result>(data: string, act: (url: string) => Promise<Result>): Promise<Result> {
    const flags = { port: "0", data, "log-level": "silent", capabilities: "on" };
    await using relay = await startRelay(loadConfig({ flags, env: {}, dotenv: {} }));
    return await act(relay.url);
  }

  async function effective(url: string): Promise<readonly boolean[]> {
    const { grants } = await new RelayClient({ url }).capabilityUsage();
    return grants.map((grant) => grant.effective);
  }

  it("is in the database and outlives the relay; a file with another key is refused", async () => {
    await using stack = new AsyncDisposableStack();
    const data = await mkdtemp(join(tmpdir(), "capabilities-"));
    stack.defer(() => rm(data, { recursive: true, force: true }));
    const grant = { subject: LULU, action: "a2a.compact" };
    await onRelay(data, async (url) => {
      await new RelayClient({ url }).register({ agent_id: LULU });
      await new RelayClient({ url }).grantCapability(grant);
    });
    assert.deepEqual(await onRelay(data, effective), [true]);
    const file = join(data, "identity.key");
    await assert.rejects(stat(file), { code: "ENOENT" });
    const { privateKey } = generateKeyPairSync("ed25519");
    const key = privateKey.export({ format: "der", type: "pkcs8" }).toString("base64");
    await writeFile(file, key, { mode: 0o600 });
    await refused(onRelay(data, effective), "unavailable", /identity\.key is not the key in the database/);
    await chmod(file, 0o644);
    await refused(onRelay(data, effective), "unavailable", /identity\.key can be read by others/);
    await rm(file);
    assert.deepEqual(await onRelay(data, effective), [true]);
  });
});
