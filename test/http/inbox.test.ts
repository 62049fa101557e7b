import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { FakeClock } from "../../packages/relay/testing/fake-clock.ts";
import {
  type AnswerBody,
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";
import { messageOf, sign, type SigningKeyShown } from "../../packages/relay/testing/signed-message.ts";
import { ask, errorCode } from "../support/ask.ts";
import { startChildRelay } from "../support/child-relay.ts";

const INBOX = "/api/a2a/inbox";
const ROOT_KEY = "0123456789abcdef0123456789abcdef";
const AGE_MS = LIMITS.signedMessageAgeMsMax;
const NOT_SIGNED = /^signature: is not one of a signing key that works here/;
/** A sender by webhook has no other credential. */
const NO_KEY = { headers: { authorization: "" } };

/** A relay that asks for keys; calls without another one are made by its operator. */
function openKeyedRelay(options: object = {}): Promise<HttpRelay> {
  const headers = { authorization: `Bearer ${ROOT_KEY}` };
  return openHttpRelay({ env: { A2A_RELAY_API_KEY: ROOT_KEY }, headers, ...options });
}

async function newKey(relay: HttpRelay, said: object = {}): Promise<AnswerBody> {
  const { status, json, text } = await relay.post("/keys", { agent_id: LULU, use: "sign", ...said });
  assert.equal(status, 201, text);
  return json;
}

function signed(key: SigningKeyShown, said: object = {}, nowMs = Date.now()) {
  return sign(key, messageOf(key, said, nowMs));
}

/** Over the wire as a stranger sends it. */
function deliver(relay: HttpRelay, message: object, path = INBOX): Promise<HttpAnswer> {
  return relay.post(path, message, NO_KEY);
}

async function openMessages(relay: HttpRelay, prefix = ""): Promise<AnswerBody["messages"]> {
  return (await relay.get(`${prefix}/mailbox/${ZHIWEI}?peek=true`)).json.messages;
}

describe("POST /api/a2a/inbox", () => {
  it("takes a signed message where keys are needed, and answers as POST /messages does", async () => {
    await using relay = await openKeyedRelay();
    const key = await newKey(relay);
    assert.match(key.key, /^whsec_[A-Za-z0-9+/]{43}=$/);
    const draft = signed(key, { type: "request", x_panel: { 标签: ["磁盘", 7] } });
    const { status, json, text } = await deliver(relay, draft);
    assert.equal(status, 201, text);
    assert.deepEqual([json.receipt.message_id, json.receipt.stage], [draft.id, "accepted"]);
    const { message } = (await relay.get(`/messages/${draft.id}`)).json;
    assert.deepEqual(message, json.message);
    for (const [member, value] of Object.entries(draft)) assert.deepEqual(message[member], value, member);
    assert.equal((await relay.get(`/tasks/${json.receipt.task_id}`)).status, 200);
  });

  it("takes it under local trust too, where a message without a signature is not the operator's", async () => {
    await using relay = await openHttpRelay();
    const key = await newKey(relay);
    assert.equal((await relay.post(INBOX, signed(key))).status, 201);
    const plain = { from: LULU, to: ZHIWEI, body: "知微你好" };
    await relay.refused(relay.post(INBOX, plain), "invalid_argument", /is missing/);
    await relay.refused(relay.post(INBOX), "invalid_argument");
    assert.equal((await openMessages(relay)).length, 1);
  });

  it("gives the same receipt to the same message under a fresh nonce, and refuses the old one", async () => {
    await using relay = await openKeyedRelay();
    const key = await newKey(relay);
    const first = signed(key);
    const { receipt } = (await deliver(relay, first)).json;
    const { id, created_at } = first;
    const again = await deliver(relay, signed(key, { id, created_at }));
    assert.deepEqual([again.status, again.json.receipt], [200, receipt]);
    await relay.refused(deliver(relay, first), "conflict", /^nonce: this nonce was used already/);
    const other = signed(key, { id, created_at, body: "别的" });
    await relay.refused(deliver(relay, other), "conflict", /was already used for other content/);
    assert.equal((await openMessages(relay)).length, 1);
  });

  it("refuses what was signed too long ago, or by a clock too far ahead", async () => {
    const clock = new FakeClock();
    await using relay = await openKeyedRelay({ clock });
    const key = await newKey(relay);
    for (const offMs of [-AGE_MS - 1, AGE_MS + 1]) {
      const off = deliver(relay, signed(key, {}, clock.nowMs() + offMs));
      await relay.refused(
        off,
        "unauthenticated",
        /^signed_at: .* is more than 5 minutes from .*; sign anew$/,
      );
    }
    const message = signed(key, {}, clock.nowMs());
    clock.advance(AGE_MS);
    assert.equal((await deliver(relay, message)).status, 201);
  });

  it("lets no agent sign for another", async () => {
    await using relay = await openKeyedRelay();
    const key = await newKey(relay);
    const message = signed(key, { from: ZHIWEI, to: LULU });
    await relay.refused(deliver(relay, message), "permission_denied", /an agent acts for itself only/);
    const { events } = (await relay.get("/events?type=access.denied")).json;
    assert.deepEqual(
      events.map(({ actor, data }) => [actor, data["verb"], data["key_id"]]),
      [[LULU, "messages.send", key.key_id]],
    );
  });

  it("gives the same answer to a sender that cannot sign, whatever is wrong with the key", async () => {
    const clock = new FakeClock();
    await using relay = await openKeyedRelay({ clock });
    const key = await newKey(relay);
    const ended = await newKey(relay, { expires_at: clock.nowMs() + 1_000 });
    const revoked = await newKey(relay);
    const rotated = await newKey(relay);
    const bearer = await newKey(relay, { use: "bearer" });
    await relay.post(`/keys/${revoked.key_id}/revoke`);
    const next = (await relay.post(`/keys/${rotated.key_id}/rotate`, { overlap_ms: 1_000 })).json;
    const signedNow = (by: SigningKeyShown): object => signed(by, {}, clock.nowMs());
    for (const each of [ended, rotated, next]) {
      assert.equal((await deliver(relay, signedNow(each))).status, 201);
    }
    clock.advance(1_000);
    assert.equal((await deliver(relay, signedNow(next))).status, 201);
    const tries: readonly object[] = [
      signedNow({ key_id: "key_0190abcd-0000-7000-8000-000000000000", key: key.key }),
      signedNow({ key_id: bearer.key_id, key: bearer.key.split(".")[1] ?? "" }),
      signedNow({ key_id: key.key_id, key: next.key }),
      signedNow(ended),
      signedNow(revoked),
      signedNow(rotated),
      { ...signedNow(key), body: "改了" },
      { ...signedNow(key), signature: "v1,知微" },
    ];
    const words = new Set<string>();
    for (const message of tries) {
      const refusal = await relay.refused(deliver(relay, message), "unauthenticated", NOT_SIGNED);
      words.add(JSON.stringify(refusal));
    }
    assert.equal(words.size, 1);
    const { events } = (await relay.get("/events?type=access.unauthenticated")).json;
    assert.deepEqual(
      events.map(({ data }) => data["reason"]),
      ["unknown", "bearer", "signature", "expired", "revoked", "expired", "signature", "signature"],
    );
    assert.equal((await relay.get("/journal/verify")).json.ok, true);
  });

  it("puts on record who could not sign a bounded number of times", async () => {
    await using relay = await openKeyedRelay({ clock: new FakeClock() });
    const key = await newKey(relay);
    const most = LIMITS.unauthenticatedEventsPerMinuteMax;
    const forged = { ...signed(key), signature: "v1,AAAA" };
    await Promise.all(
      Array.from({ length: most + 20 }, () => relay.refused(deliver(relay, forged), "unauthenticated")),
    );
    const { events } = (await relay.get("/events?type=access.unauthenticated&limit=500")).json;
    assert.equal(events.length, most);
  });

  it("is for secrets that open nothing else", async () => {
    await using relay = await openKeyedRelay();
    const key = await newKey(relay);
    for (const token of [key.key, key.key.slice(6), `${key.key_id}.${key.key}`]) {
      const headers = { authorization: `Bearer ${token}` };
      await relay.refused(
        relay.get(`/mailbox/${LULU}`, { headers }),
        "unauthenticated",
        /^unknown or revoked token/,
      );
      await relay.refused(
        relay.post("/messages", { to: ZHIWEI, body: "好" }, { headers }),
        "unauthenticated",
      );
    }
  });

  it("takes messages of other tenants, by the plain path or by their own and no other", async () => {
    await using relay = await openKeyedRelay();
    const studio = `/t/${encodeURIComponent("工作室")}`;
    const key = await newKey(relay, { tenant: "工作室" });
    for (const agent_id of [LULU, ZHIWEI]) await relay.post(`${studio}/agents/register`, { agent_id });
    for (const path of [INBOX, studio + INBOX]) {
      const { status, text } = await deliver(relay, signed(key), path);
      assert.equal(status, 201, text);
    }
    for (const path of [`/t/default${INBOX}`, `/t/nowhere${INBOX}`]) {
      await relay.refused(deliver(relay, signed(key), path), "permission_denied", /its own tenant only/);
    }
    assert.deepEqual(
      [(await openMessages(relay, studio)).length, (await openMessages(relay)).length],
      [2, 0],
    );
  });

  it("asks for capabilities as every send does", async () => {
    const env = { A2A_RELAY_API_KEY: ROOT_KEY, A2A_RELAY_CAPABILITIES: "on" };
    await using relay = await openKeyedRelay({ env });
    const key = await newKey(relay);
    const message = signed(key, { type: "request" });
    await relay.refused(deliver(relay, message), "permission_denied", /a2a\.send/);
    await relay.post("/capabilities/grant", { subject: LULU, action: `a2a.send.${ZHIWEI}` });
    await relay.post("/capabilities/grant", { subject: ZHIWEI, action: `a2a.recv.${LULU}` });
    assert.equal((await deliver(relay, message)).status, 201, "what was refused has not used its nonce");
  });

  it("obeys the rules for hosts, pages, content types and sizes", async () => {
    await using relay = await openHttpRelay();
    const key = await newKey(relay);
    const message = signed(key);
    const post = (headers: Readonly<Record<string, string>>, body: unknown = message): Promise<HttpAnswer> =>
      relay.post(INBOX, body, { headers });
    await relay.refused(post({ host: "evil.example" }), "permission_denied");
    await relay.refused(post({ origin: "https://evil.example" }), "permission_denied");
    await relay.refused(
      post({ "content-type": "text/plain" }, JSON.stringify(message)),
      "unsupported_media_type",
    );
    await relay.refused(post({}, signed(key, { body: "知".repeat(LIMITS.bodyBytesMax / 3) })), "too_large");
    assert.equal((await post({})).status, 201);
  });

  it("never shows a secret again: not in lists, events, errors or the log", async () => {
    await using relay = await startChildRelay({ env: { A2A_RELAY_LOG_LEVEL: "debug" } });
    const call = (method: "GET" | "POST", path: string, body?: object) =>
      ask<AnswerBody>(relay.url, method, path, body);
    for (const agent_id of [LULU, ZHIWEI]) await call("POST", "/agents/register", { agent_id });
    const key = (await call("POST", "/keys", { agent_id: LULU, use: "sign" })).body;
    const next = (await call("POST", `/keys/${key.key_id}/rotate`)).body;
    const said: unknown[] = [await call("POST", INBOX, signed(key))];
    said.push(await call("POST", INBOX, { ...signed(key), body: "改" }));
    said.push(await call("POST", `/keys/${key.key_id}/revoke`));
    for (const path of ["/keys?limit=500", "/events?limit=500", `/agents/${LULU}`, "/openapi.json"]) {
      said.push(await call("GET", path));
    }
    await relay.kill("SIGTERM");
    const everything = JSON.stringify(said) + relay.stderr();
    assert.ok(everything.includes(key.key_id));
    for (const { key: secret } of [key, next]) {
      assert.match(secret, /^whsec_/);
      assert.ok(!everything.includes(secret.slice(6)));
    }
  });
});

describe("POST /api/a2a/inbox after kill -9", () => {
  it("still refuses what it took before, and takes what it did not", async () => {
    const directory = await mkdtemp(join(tmpdir(), "inbox-"));
    const dataDirectory = join(directory, "data");
    try {
      await using first = await startChildRelay({ dataDirectory });
      for (const agent_id of [LULU, ZHIWEI]) await ask(first.url, "POST", "/agents/register", { agent_id });
      const wanted = { agent_id: LULU, use: "sign" };
      const key = (await ask<AnswerBody>(first.url, "POST", "/keys", wanted)).body;
      const [sent, refused, unsent] = [signed(key), signed(key, { to: "kames@desk" }), signed(key)];
      assert.equal((await ask(first.url, "POST", INBOX, sent)).status, 201);
      assert.equal(errorCode(await ask(first.url, "POST", INBOX, refused)), "unknown_agent");
      await first.kill("SIGKILL");

      await using second = await startChildRelay({ dataDirectory });
      const replayed = await ask<AnswerBody>(second.url, "POST", INBOX, sent);
      assert.deepEqual([replayed.status, errorCode(replayed)], [409, "conflict"]);
      assert.match(replayed.body.error.message, /^nonce: /);
      const { id, created_at } = sent;
      assert.equal((await ask(second.url, "POST", INBOX, signed(key, { id, created_at }))).status, 200);
      await ask(second.url, "POST", "/agents/register", { agent_id: "kames@desk" });
      assert.equal((await ask(second.url, "POST", INBOX, refused)).status, 201);
      assert.equal((await ask(second.url, "POST", INBOX, unsent)).status, 201);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
