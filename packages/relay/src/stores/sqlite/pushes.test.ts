import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import {
  aNewKey,
  aNewPushEndpoint,
  attemptOf,
  clashOf,
  commit,
  pushOf,
  send,
  TENANT,
  ZHIWEI,
} from "../../../testing/store-builders.ts";
import type { RelayStore } from "../../core/ports/relay-store.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";

const directory = mkdtempSync(join(tmpdir(), "a2a-relay-pushes-"));

function open(path: string): Promise<RelayStore> {
  return openSqliteStore({
    path,
    checkpointPages: 1_000,
    onFatal: (error) => {
      throw error;
    },
  });
}

async function contents(store: RelayStore, messageId: string): Promise<unknown> {
  return {
    endpoint: await store.endpoints.get(TENANT, ZHIWEI),
    active: await store.endpoints.list({ state: "active", after: undefined, limit: 10 }),
    push: (await store.pushes.get(TENANT, [messageId]))[0],
    attempts: await store.pushes.attempts(TENANT, messageId, 100),
    due: await store.pushes.due(TENANT, ZHIWEI, NOON_MS, 10),
    pending: await store.pushes.countPending(TENANT, ZHIWEI),
  };
}

describe("pushes in a SQLite file", () => {
  after(() => rmSync(directory, { recursive: true, force: true }));

  it("continue after a restart: endpoint, cursor, due time and every attempt", async () => {
    const path = join(directory, "relay.db");
    const endpoint = aNewPushEndpoint({ failures: 2, openUntilMs: NOON_MS + 9, afterPosition: 4 });
    const key = aNewKey({ signingSecret: "whsec_秘密" });
    const nonce = { keyId: key.id, nonce: "随机数", expiresAtMs: NOON_MS };
    const [messageId, before] = await (async () => {
      await using store = await open(path);
      const message = await send(store);
      const push = pushOf(message, { attempts: 2 });
      await commit(store, {
        pushEndpoints: [endpoint],
        pushes: [push],
        pushAttempts: [attemptOf(push), attemptOf(push, { attempt: 2, status: null, error: "超时" })],
        keys: [key],
        nonces: [nonce],
      });
      return [message.id, await contents(store, message.id)];
    })();
    await using store = await open(path);
    assert.deepEqual(await contents(store, messageId), before);
    assert.deepEqual(await store.endpoints.get(TENANT, ZHIWEI), { ...endpoint, version: 1 });
    assert.equal((await store.pushes.attempts(TENANT, messageId, 100)).length, 2);
    assert.equal(await clashOf(store, { nonces: [nonce] }), "nonce");
    assert.equal((await store.keys.get(key.id))?.signingSecret, "whsec_秘密");
  });
});
