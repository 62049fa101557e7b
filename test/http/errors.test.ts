import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RELAY_ERROR_CODES, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";
import { rootOperator } from "../../packages/relay/src/core/access/principal.ts";
import { HTTP_STATUS, RETRY_AFTER_S } from "../../packages/relay/src/transports/http/http-error.ts";
import {
  type HttpAnswer,
  type HttpRelay,
  LULU,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";

const DRAFT = { from: LULU, to: ZHIWEI, body: "知微你好" };
const MAILBOX = `/mailbox/${ZHIWEI}`;

/** How each code is met on the wire. */
const WAYS: Readonly<Partial<Record<RelayErrorCode, (relay: HttpRelay) => Promise<HttpAnswer>>>> = {
  invalid_argument: (relay) => relay.post("/messages", { ...DRAFT, body: 7 }),
  permission_denied: (relay) => relay.get("/agents", { headers: { origin: "https://evil.example" } }),
  not_found: (relay) => relay.get("/messages/nothing"),
  unknown_agent: (relay) => relay.post("/messages", { ...DRAFT, to: "missing" }),
  ambiguous_agent: async (relay) => {
    for (const agent_id of ["k1", "k2"])
      await relay.post("/agents/register", { agent_id, display_name: "kames" });
    return relay.post("/messages", { ...DRAFT, to: "kames" });
  },
  conflict: async (relay) => {
    await relay.send({ id: "m1" });
    return relay.post("/messages", { ...DRAFT, id: "m1", body: "别的" });
  },
  lease_required: async (relay) => {
    await relay.send();
    const { message_id } = await relay.lease();
    return relay.post(`${MAILBOX}/fail`, { message_id, reason: "x" });
  },
  lease_lost: async (relay) => {
    await relay.send();
    const { message_id } = await relay.lease();
    return relay.post(`${MAILBOX}/fail`, { message_id, lease_id: "older", reason: "x" });
  },
  task_canceled: async (relay) => {
    const { task_id } = await relay.send({ type: "request" });
    await relay.post(`/tasks/${task_id}/cancel`);
    return relay.post(`/tasks/${task_id}/complete`);
  },
  task_finished: async (relay) => {
    const { task_id } = await relay.send({ type: "request" });
    await relay.post(`/tasks/${task_id}/complete`);
    return relay.post(`/tasks/${task_id}/fail`, { reason: "x" });
  },
  wrong_state: async (relay) => {
    const { message_id } = await relay.send();
    const command = { action: "requeue", duplicate_risk: "idempotent" };
    return relay.post("/repair", { message_id, reason: "x", command });
  },
  too_large: (relay) => relay.post("/messages", { ...DRAFT, subject: "x".repeat(501) }),
  unsupported_media_type: (relay) =>
    relay.post("/messages", "{}", { headers: { "content-type": "text/plain" } }),
  mailbox_full: async (relay) => {
    for (let index = 0; index < 3; index += 1) await relay.send();
    return relay.post("/messages", DRAFT);
  },
};

/** Met only when the disk, the load or the relay itself is in trouble. */
const BY_TROUBLE: readonly RelayErrorCode[] = [
  "unauthenticated",
  "resource_exhausted",
  "storage_full",
  "unavailable",
  "internal",
];

describe("an error over HTTP", () => {
  it("has a status for every code, and every code has a way to be met", () => {
    assert.deepEqual(Object.keys(HTTP_STATUS).toSorted(), [...RELAY_ERROR_CODES].toSorted());
    assert.deepEqual([...Object.keys(WAYS), ...BY_TROUBLE].toSorted(), [...RELAY_ERROR_CODES].toSorted());
  });

  for (const code of RELAY_ERROR_CODES) {
    const way = WAYS[code];
    if (way === undefined) continue;
    it(`is ${code} with its status ${HTTP_STATUS[code]} and one shape`, async () => {
      await using relay = await openHttpRelay({ env: { A2A_RELAY_MAILBOX_OPEN_MAX: "3" } });
      const answer = await way(relay);
      await relay.refused(Promise.resolve(answer), code);
      assert.equal(answer.headers["content-type"], "application/json; charset=utf-8");
      assert.deepEqual(Object.keys(JSON.parse(answer.text) as object), ["error"]);
      assert.ok(Object.keys(answer.json.error).every((key) => ["code", "message", "details"].includes(key)));
      const retryAfter = RETRY_AFTER_S[code];
      assert.equal(answer.headers["retry-after"], retryAfter === undefined ? undefined : String(retryAfter));
    });
  }

  for (const code of BY_TROUBLE) {
    it(`is ${code} with its status ${HTTP_STATUS[code]} when the relay is in trouble`, async () => {
      let isInTrouble = false;
      const authenticator = {
        authenticate: async () => {
          if (isInTrouble) throw new RelayError(code, "in trouble");
          return rootOperator();
        },
      };
      await using relay = await openHttpRelay({ authenticator });
      isInTrouble = true;
      const answer = await fetch(`${relay.url}/agents`, { headers: { connection: "close" } });
      assert.equal(answer.status, HTTP_STATUS[code]);
      assert.deepEqual(await answer.json(), { error: { code, message: "in trouble" } });
      const retryAfter = RETRY_AFTER_S[code];
      assert.equal(answer.headers.get("retry-after"), retryAfter === undefined ? null : String(retryAfter));
    });
  }

  it("that the relay did not foresee tells nothing of itself", async () => {
    let isBroken = false;
    const authenticator = {
      authenticate: async () => {
        if (isBroken) throw new TypeError("secret at line 7");
        return rootOperator();
      },
    };
    await using relay = await openHttpRelay({ authenticator });
    isBroken = true;
    const answer = await fetch(`${relay.url}/agents`, { headers: { connection: "close" } });
    assert.equal(answer.status, 500);
    const text = await answer.text();
    assert.doesNotMatch(text, /secret|line 7|TypeError|stack/);
    assert.match(text, /"code":"internal"/);
  });
});
