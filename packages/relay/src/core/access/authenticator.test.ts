import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KeyCreateRequest } from "@a2a-relay/protocol";
import { type CoreOnMemory, coreOnMemory, LULU } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { KeyAuthenticator } from "./authenticator.ts";
import { operatorOf, rootOperator } from "./principal.ts";
import { RefusedCallers } from "./refused-callers.ts";

const ROOT_KEY = "0123456789abcdef";
const HOUR_MS = 3_600_000;

function authenticatorOf(core: CoreOnMemory, apiKey?: string): KeyAuthenticator {
  const { store, clock } = core;
  return new KeyAuthenticator({ store, clock, refusals: new RefusedCallers(core) }, { apiKey });
}

function newKey(core: CoreOnMemory, request: KeyCreateRequest = {}) {
  return core.keys.create(rootOperator(), request);
}

async function refusals(core: CoreOnMemory): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const query = { type: "access.unauthenticated", limit: 500 };
  return (await core.journal.events(core.operator, query)).events.map(({ data }) => data);
}

describe("local trust", () => {
  it("takes a caller without a credential for the relay's operator", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core);
    assert.deepEqual(authenticator.everybody, rootOperator());
    assert.deepEqual(await authenticator.authenticate(undefined, "http"), rootOperator());
  });

  it("still checks a key that the caller sends", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core);
    const { key } = await newKey(core, { agent_id: LULU });
    assert.equal((await authenticator.authenticate(`Bearer ${key}`, "http")).kind, "agent");
    for (const authorization of ["", "Bearer", `Bearer ${ROOT_KEY}`, `Basic ${key}`, `Bearer ${key}x`]) {
      await refused(authenticator.authenticate(authorization, "http"), "unauthenticated");
    }
  });
});

describe("the key of the configuration", () => {
  it("makes its holder the operator of the relay", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    assert.equal(authenticator.everybody, undefined);
    assert.deepEqual(await authenticator.authenticate(`Bearer ${ROOT_KEY}`, "http"), rootOperator());
    assert.deepEqual(await authenticator.authenticate(`bearer  ${ROOT_KEY}`, "http"), rootOperator());
  });

  it("may have the form of a key that this relay made", async () => {
    await using core = await coreOnMemory();
    const { key } = await newKey(core);
    const alike = `key_00000000-0000-7000-8000-000000000000.${key.split(".")[1]}`;
    assert.deepEqual(await authenticatorOf(core, alike).authenticate(`Bearer ${alike}`, "x"), rootOperator());
  });

  it("is asked for when it is missing", async () => {
    await using core = await coreOnMemory();
    const asked = authenticatorOf(core, ROOT_KEY).authenticate(undefined, "http");
    await refused(asked, "unauthenticated", /missing Authorization header; send Authorization: Bearer/);
  });

  for (const wrong of ["0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "知微"]) {
    it(`is not "${wrong}", and the refusal does not say why`, async () => {
      await using core = await coreOnMemory();
      const error = await refused(
        authenticatorOf(core, ROOT_KEY).authenticate(`Bearer ${wrong}`, "http"),
        "unauthenticated",
      );
      assert.doesNotMatch(error.message, /0123/);
    });
  }
});

describe("a key that this relay made", () => {
  it("authenticates its holder", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    const operator = await newKey(core, { tenant: "知微工作室" });
    assert.deepEqual(await authenticator.authenticate(`Bearer ${operator.key}`, "http"), {
      kind: "operator",
      isRoot: false,
      tenant: "知微工作室",
      keyId: operator.key_id,
    });
    const agent = await newKey(core, { agent_id: LULU, verbs: ["messages.send", "mailbox.read"] });
    assert.deepEqual(await authenticator.authenticate(`Bearer ${agent.key}`, "http"), {
      kind: "agent",
      agentId: LULU,
      tenant: "default",
      keyId: agent.key_id,
      verbs: new Set(["messages.send", "mailbox.read"]),
    });
  });

  it("is refused in the same words whether its id or its secret is wrong", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    const [one, other] = [await newKey(core), await newKey(core)];
    const mixed = `${one.key_id}.${other.key.split(".")[1]}`;
    const unknownId = `key_00000000-0000-7000-8000-000000000000.${one.key.split(".")[1]}`;
    const messages = [];
    for (const key of [mixed, unknownId, "key_none.zzzz", `${one.key}1`, one.key.slice(0, -1), one.key_id]) {
      const error = await refused(authenticator.authenticate(`Bearer ${key}`, "http"), "unauthenticated");
      messages.push(error.message);
    }
    assert.deepEqual(new Set(messages).size, 1, messages.join("\n"));
    const named = (await refusals(core)).map((data) => data["key_id"]);
    assert.deepEqual(named.slice(0, 2), [one.key_id, undefined], "a key that exists is named in the journal");
  });

  it("is refused from its expiry on, and only a caller with the secret learns why", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    const expires_at = new Date(core.clock.nowMs() + HOUR_MS).toISOString();
    const { key, key_id } = await newKey(core, { expires_at });
    core.clock.advance(HOUR_MS - 1);
    assert.equal((await authenticator.authenticate(`Bearer ${key}`, "http")).keyId, key_id);
    core.clock.advance(1);
    const held = authenticator.authenticate(`Bearer ${key}`, "http");
    await refused(held, "unauthenticated", new RegExp(`expired at ${expires_at}`));
    const guessed = authenticator.authenticate(`Bearer ${key_id}.${"1".repeat(43)}`, "http");
    await refused(guessed, "unauthenticated", /^unknown or revoked token/);
    assert.deepEqual(
      (await refusals(core)).map(({ reason, key_id: named }) => [reason, named]),
      [
        ["expired", key_id],
        ["unknown", key_id],
      ],
    );
  });

  it("is refused once it is revoked", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    const { key, key_id } = await newKey(core);
    await authenticator.authenticate(`Bearer ${key}`, "http");
    await core.keys.revoke(core.operator, key_id);
    await refused(
      authenticator.authenticate(`Bearer ${key}`, "http"),
      "unauthenticated",
      /was revoked at 2026/,
    );
  });

  it("works beside its successor during the overlap", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    const old = await newKey(core, { agent_id: LULU });
    const successor = await core.keys.rotate(core.operator, old.key_id, { overlap_ms: HOUR_MS });
    core.clock.advance(HOUR_MS - 1);
    for (const { key } of [old, successor]) await authenticator.authenticate(`Bearer ${key}`, "http");
    core.clock.advance(1);
    await authenticator.authenticate(`Bearer ${successor.key}`, "http");
    await refused(authenticator.authenticate(`Bearer ${old.key}`, "http"), "unauthenticated", /expired/);
  });
});

describe("callers that are refused", () => {
  it("are recorded with the reason and the transport", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    for (const authorization of [undefined, "Basic bHVsdTp4", "Bearer", "Bearer a b", "Bearer 知微"]) {
      await refused(authenticator.authenticate(authorization, "http"), "unauthenticated");
    }
    assert.deepEqual(
      await refusals(core),
      ["missing", "scheme", "malformed", "malformed", "unknown"].map((reason) => ({
        reason,
        transport: "http",
      })),
    );
  });

  it("that name a key of another tenant are recorded in that tenant only", async () => {
    await using core = await coreOnMemory();
    const { key_id } = await newKey(core, { tenant: "acme" });
    const guessed = `Bearer ${key_id}.${"1".repeat(43)}`;
    await refused(authenticatorOf(core, ROOT_KEY).authenticate(guessed, "http"), "unauthenticated");
    assert.deepEqual(await refusals(core), []);
    const { events } = await core.journal.events(operatorOf("acme"), { type: "access.unauthenticated" });
    assert.deepEqual(
      events.map(({ data }) => data["key_id"]),
      [key_id],
    );
  });

  it("are only counted beyond the limit per minute", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    for (let count = 0; count < 75; count += 1) {
      await refused(authenticator.authenticate(undefined, "http"), "unauthenticated");
    }
    assert.equal((await refusals(core)).length, 60);
    core.clock.advance(60_000);
    await refused(authenticator.authenticate(undefined, "http"), "unauthenticated");
    await refused(authenticator.authenticate(undefined, "http"), "unauthenticated");
    const latest = (await refusals(core)).slice(60);
    assert.deepEqual(
      latest.map(({ suppressed }) => suppressed),
      [15, undefined],
    );
  });

  it("that cannot be recorded are refused for that reason", async () => {
    await using core = await coreOnMemory();
    const authenticator = authenticatorOf(core, ROOT_KEY);
    core.store.commit = () => Promise.reject(new Error("no space"));
    await refused(
      authenticator.authenticate(undefined, "http"),
      "unavailable",
      /audit write failed; refusing to proceed/,
    );
  });
});
