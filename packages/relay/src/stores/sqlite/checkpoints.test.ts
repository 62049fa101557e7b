import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { readIds, send } from "../../../testing/store-builders.ts";
import { openSqliteStore } from "./sqlite-relay-store.ts";

const directory = mkdtempSync(join(tmpdir(), "a2a-relay-checkpoints-"));

describe("the write-ahead log", () => {
  after(() => rmSync(directory, { recursive: true, force: true }));

  it("stays within its bound under load", async () => {
    const path = join(directory, "relay.db");
    const pages = 50;
    await using store = await openSqliteStore({ path, checkpointPages: pages, onFatal: () => undefined });
    for (let round = 0; round < 40; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => send(store)));
    }
    assert.ok(statSync(`${path}-wal`).size < pages * 8_192 * 3);
    assert.equal((await readIds(store)).length, 400);
  });
});
