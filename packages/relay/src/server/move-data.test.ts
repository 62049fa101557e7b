import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NOON_MS } from "../../testing/fake-clock.ts";
import { startPostgres, type TestServer } from "../../testing/postgres-server.ts";
import { TENANT } from "../../testing/store-builders.ts";
import { chunksOf, QUIETLY, sealed } from "../../testing/transfer-files.ts";
import { loadStoreConfig } from "../config/load-config.ts";
import type { StoreConfig } from "../config/relay-config.ts";
import { AnchorFile } from "../stores/archive/anchor-file.ts";
import { importData, type ImportReport } from "./move-data.ts";
import { openDirectory, openStore } from "./open-store.ts";

const folder = mkdtempSync(join(tmpdir(), "move-data-"));
let server: TestServer;
const GOLDEN = new URL("../../testing/golden/export.ndjson", import.meta.url);
/** The lines of an export, without its trailer. */
const records = readFileSync(GOLDEN, "utf8").split("\n").slice(0, -2);

before(async () => {
  server = await startPostgres();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function newConfig(store: "SQLite" | "PostgreSQL"): Promise<StoreConfig> {
  const data = mkdtempSync(join(folder, "data-"));
  const flags = { data, ...(store === "SQLite" ? {} : { database: await server.newDatabase() }) };
  return loadStoreConfig({ flags, env: {}, dotenv: {} });
}

function imported(config: StoreConfig, lines: readonly string[]): Promise<ImportReport> {
  return importData(config, chunksOf(sealed(lines)), QUIETLY);
}

function without(...beginnings: readonly string[]): readonly string[] {
  const lines = records.filter((line) => !beginnings.some((beginning) => line.startsWith(beginning)));
  assert.equal(lines.length, records.length - beginnings.length);
  return lines;
}

function opened(config: StoreConfig): ReturnType<typeof openStore> {
  const settings = { databasePoolMax: 2, databaseRls: false, migrate: false, checkpointPages: 1_000 };
  return openStore({ ...config, ...settings }, { onFatal: () => assert.fail() });
}

for (const store of ["SQLite", "PostgreSQL"] as const) {
  describe(`importing into ${store}`, () => {
    it("verifies the journal of every tenant up to the heads of the file", async () => {
      const config = await newConfig(store);
      const { chains, header, problem } = await imported(config, records);
      assert.equal(problem, undefined);
      assert.deepEqual(
        chains.map(({ tenant, last_seq: seq, head: hash, events, messages }) => [
          tenant,
          seq,
          hash,
          events,
          messages,
        ]),
        header.chains.map(({ tenant, head }) => [
          tenant,
          head.seq,
          head.hash,
          ...(tenant === TENANT ? [10, 7] : [2, 1]),
        ]),
      );
      await (await opened(config))[Symbol.asyncDispose]();
    });

    const TAMPERED: readonly (readonly [what: string, lines: () => readonly string[], problem: RegExp])[] = [
      [
        "a message with another text",
        () => records.map((line) => line.replace(/^({"message":.*m-held.*)知微你好/, "$1知微再见")),
        /^tenant default: message m-held is not the one that event 5 accepted$/,
      ],
      [
        "no trace of a message",
        () =>
          without(
            '{"message":{"tenant":"default","id":"m-held"',
            '{"delivery":{"tenant":"default","message_id":"m-held"',
          ),
        /^tenant default: a message that was accepted is gone, and retention did not take it$/,
      ],
      [
        "an event too few",
        () => without('{"event":{"tenant":"default","seq":5'),
        /^tenant default: event 5 is missing: 6 follows 4$/,
      ],
      [
        "the last event cut off",
        () => without('{"event":{"tenant":"另一家公司","seq":3'),
        /^tenant 另一家公司: events 3 to 3 are missing$/,
      ],
      [
        "an event that says something else",
        () => records.map((line) => line.replace("mail.retired", "message.dead")),
        /^tenant default: event 10 \(message\.dead\) was changed after it was recorded$/,
      ],
      [
        "another head",
        () => records.map((line) => line.replace(/^({"header":.*"seq":10,"hash":")bf/, "$1fb")),
        /^tenant default: the head says fb.*, the chain ends in bf/,
      ],
    ];
    for (const [what, lines, problem] of TAMPERED) {
      it(`finds in a file ${what}, and keeps relays from the data`, async () => {
        const config = await newConfig(store);
        const report = await imported(config, lines());
        assert.match(report.problem ?? "", problem);
        await assert.rejects(opened(config), /holds a part of an import/);
      });
    }
  });
}

describe("importing", () => {
  it("compares the journal with the anchors of the relay, if it has any", async () => {
    const config = await newConfig("SQLite");
    openDirectory("anchors", config.anchorDirectory, "--anchor-dir");
    const anchor = { tenant: TENANT, seq: 12, hash: "c".repeat(64), atMs: NOON_MS };
    await new AnchorFile(config.anchorDirectory).keep([anchor]);
    const { problem } = await imported(config, records);
    assert.match(problem ?? "", /has seen event 12, but the chain ends with event 10: 2 events are missing/);
    const unanchored = { ...config, anchorDirectory: join(config.dataDirectory, "none") };
    assert.equal((await imported(unanchored, records)).problem, undefined);
  });

  it("misses the journal of a tenant that only the anchors know", async () => {
    const config = await newConfig("SQLite");
    openDirectory("anchors", config.anchorDirectory, "--anchor-dir");
    const anchor = { tenant: "第三家公司", seq: 5, hash: "c".repeat(64), atMs: NOON_MS };
    await new AnchorFile(config.anchorDirectory).keep([anchor]);
    const { problem } = await imported(config, records);
    assert.match(problem ?? "", /^tenant 第三家公司: .* has seen event 5, but the chain ends with event 0/);
  });

  it("leaves a database alone that a relay uses", async () => {
    const config = await newConfig("SQLite");
    await using _store = await opened(config);
    await assert.rejects(imported(config, records), { code: "unavailable", message: /already in use/ });
  });
});
