import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { sendOnRecord } from "../../../testing/populated-store.ts";
import { startPostgres, type TestServer } from "../../../testing/postgres-server.ts";
import { expiryAt } from "../../../testing/records.ts";
import {
  aSend,
  clashOf,
  countOpen,
  LULU,
  storedDelivery,
  TENANT,
  ZHIWEI,
} from "../../../testing/store-builders.ts";
import {
  chunksOf,
  type DataLocation,
  importInto,
  linesIn,
  postgresLocation,
  QUIETLY,
  recordsIn,
  sealed,
  TransferFolder,
} from "../../../testing/transfer-files.ts";
import { RECORD_KIND_NAMES, RECORD_KINDS, type TransferTarget } from "./records.ts";
import { importAll } from "./transfer.ts";

const GOLDEN = new URL("../../../testing/golden/export.ndjson", import.meta.url);

/** More than two batches of an import. */
const MANY_MESSAGES = 700;

/** While others write: enough to meet them between two statements. */
const EXPORTS = 6;

const folder = new TransferFolder();
let server: TestServer;

before(async () => {
  server = await startPostgres();
});
after(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function newPostgres(schema: string = server.newSchema()): DataLocation {
  return postgresLocation(server.url, schema);
}

const LOCATIONS = { SQLite: () => folder.newSqlite(), PostgreSQL: () => newPostgres() };

/** The text of an export with many messages. */
async function manyLines(): Promise<string> {
  const location = await folder.populated();
  {
    await using store = await location.openStore();
    const ids = Array.from({ length: MANY_MESSAGES }, (_, index) => `m-${index}`);
    await Promise.all(ids.map((id) => sendOnRecord(store, [{ id }])));
  }
  return readFileSync(await folder.exported(location), "utf8");
}

describe("an export", () => {
  it("goes from SQLite to PostgreSQL and back without a difference", async () => {
    const first = await folder.exported(await folder.populated());
    const postgres = newPostgres();
    await importInto(postgres, readFileSync(first, "utf8"));
    const second = await folder.exported(postgres);
    const sqlite = folder.newSqlite();
    await importInto(sqlite, readFileSync(second, "utf8"));
    const third = await folder.exported(sqlite);
    assert.deepEqual(recordsIn(second), recordsIn(first));
    assert.deepEqual(recordsIn(third), recordsIn(first));
    const [header, ...others] = [first, second, third].map((path) => {
      const line = JSON.parse(linesIn(path)[0] ?? "") as { readonly header: object };
      return { ...line.header, exported_at: "" };
    });
    for (const other of others) assert.deepEqual(other, header);
  });

  it("has the records of a store that PostgreSQL has filled itself", async () => {
    const postgres = recordsIn(await folder.exported(await folder.populated(newPostgres())));
    assert.deepEqual(kindsIn(postgres), kindsIn(recordsIn(await folder.exported(await folder.populated()))));
  });

  it("has records of every kind, in the order of the kinds", async () => {
    assert.deepEqual(
      [...kindsIn(recordsIn(await folder.exported(await folder.populated()))).keys()],
      RECORD_KIND_NAMES,
    );
  });

  it("is written as in the golden file, which can still be imported", async () => {
    const golden = readFileSync(GOLDEN, "utf8");
    const path = await folder.exported(await folder.populated());
    assert.deepEqual(recordsIn(path), golden.split("\n").slice(1, -2));
    for (const location of [folder.newSqlite(), newPostgres()]) {
      await importInto(location, golden);
      assert.deepEqual(recordsIn(await folder.exported(location)), recordsIn(path));
    }
  });

  for (const [name, newLocation] of Object.entries(LOCATIONS)) {
    it(`shows one moment of ${name}: each message with its event, also while others are written`, async () => {
      const location = await folder.populated(newLocation());
      await using store = await location.openStore();
      const ending = new AbortController();
      const writers = Array.from({ length: 4 }, async () => {
        while (!ending.signal.aborted) await sendOnRecord(store, [{}]);
      });
      try {
        for (let count = 0; count < EXPORTS; count += 1) {
          const kinds = kindsIn(recordsIn(await folder.exported(location)));
          // Beside the messages there are six other events, and a message that retention took.
          assert.equal(kinds.get("event"), (kinds.get("message") ?? 0) + 5);
        }
      } finally {
        ending.abort();
        await Promise.all(writers);
      }
    });
  }

  it("has every table and column of a store, but those that belong to the store alone", async () => {
    const schema = server.newSchema();
    await (await newPostgres(schema).openStore())[Symbol.asyncDispose]();
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const sql = `
      select c.relname as name, array_agg(a.attname::text) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      group by c.relname`;
    const tables = (await client.query(sql, [schema])).rows as { name: string; columns: string[] }[];
    await client.end();
    const moved = new Map<string, readonly string[]>(
      Object.entries(RECORD_KINDS).map(([name, { columns }]) => [name, columns]),
    );
    const left = tables.flatMap(({ name, columns }) => {
      const rest = columns.filter((column) => moved.get(name)?.includes(column) !== true);
      return rest.length === 0 ? [] : [moved.has(name) ? `${name}: ${rest.toSorted().join(" ")}` : name];
    });
    assert.deepEqual(left.toSorted(), [
      "chain_head",
      "chain_start",
      "claim",
      "delivery: ref",
      "event: position xid",
      "event_seal",
      "mailbox",
      "message: ref",
      "message_key",
      "probe",
      "relay_identity: only_row",
      "retention_progress",
      "schema_version",
      "seal_horizon",
      "settled_delivery",
    ]);
    const path = folder.newPath("relay.sqlite");
    await (await folder.newSqlite(path).openStore())[Symbol.asyncDispose]();
    using database = new DatabaseSync(path);
    const names = database.prepare("select name from sqlite_schema where type = 'table'").all();
    assert.deepEqual(
      names
        .map(({ name }) => String(name))
        .filter((name) => !moved.has(name))
        .toSorted(),
      ["chain_anchor", "chain_head", "probe", "retention_progress", "schema_version", "store_head"],
    );
  });
});

/** How many records there are of each kind. */
function kindsIn(records: readonly string[]): ReadonlyMap<string, number> {
  const kinds = records.map((line) => Object.keys(JSON.parse(line) as object)[0] ?? "");
  return new Map([...Map.groupBy(kinds, (kind) => kind)].map(([kind, lines]) => [kind, lines.length]));
}

for (const [name, newLocation] of Object.entries(LOCATIONS)) {
  describe(`an import into ${name}`, () => {
    it("continues after the last batch of a run that broke off", async () => {
      const text = await manyLines();
      const location = newLocation();
      const ends = [text.indexOf("\n") + 10, Math.floor(text.length / 2), text.length - 100];
      for (const end of ends) await assert.rejects(importInto(location, text, end), /the line was cut/);
      const { lines } = (await progressOf(location)) ?? { lines: 0 };
      assert.ok(lines > 1_000 && lines < text.split("\n").length - 2, `${lines} lines`);
      await importInto(location, text);
      assert.deepEqual(recordsIn(await folder.exported(location)), text.split("\n").slice(1, -2));
    });

    it("leaves a store that goes on as the source would", async () => {
      const location = newLocation();
      await importInto(location, await manyLines());
      await using store = await location.openStore();
      const openMax = await countOpen(store, TENANT, ZHIWEI);
      assert.equal(openMax, MANY_MESSAGES + 4);
      assert.equal(await clashOf(store, { ...aSend(), room: [{ agentId: ZHIWEI, openMax }] }), "mailbox");
      const { id } = await sendOnRecord(store, [{ id: "m-next" }]);
      const { position } = await storedDelivery(store, id);
      assert.ok(position > MANY_MESSAGES + 8, `position ${position}`);
      // Retention begins to forget a key with its message.
      await store.retention.retireMessages(TENANT, ["m-done"], NOON_MS);
      const isKept = async (): Promise<boolean> =>
        (await store.messages.sendKey(TENANT, LULU, ZHIWEI, "键-3")) !== undefined;
      assert.equal(await isKept(), true);
      await store.retention.forgetExpired(expiryAt(NOON_MS, { sendKeysBeforeMs: NOON_MS + 1 }));
      assert.equal(await isKept(), false);
    });

    it("keeps all others from the data until it is verified", async () => {
      const text = readFileSync(GOLDEN, "utf8");
      const location = newLocation();
      {
        await using target = await location.openTarget();
        await importAll(target, chunksOf(text), QUIETLY);
      }
      const refusal = {
        code: "unavailable",
        message: /holds a part of an import; import the same file again/,
      };
      await assert.rejects(location.openStore(), refusal);
      await assert.rejects(folder.exported(location), refusal);
      await importInto(location, text);
      await (await location.openStore())[Symbol.asyncDispose]();
    });

    it("refuses data that no import has written", async () => {
      const location = newLocation();
      {
        await using store = await location.openStore();
        await store.keys.identity("another-key");
      }
      const message =
        "there is data already, in relay_identity; import into a new data directory or an empty database";
      const text = readFileSync(GOLDEN, "utf8");
      await assert.rejects(importInto(location, text), { code: "conflict", message });
    });

    it("refuses to continue with another file", async () => {
      const text = await manyLines();
      const lines = text.split("\n").slice(0, -2);
      const location = newLocation();
      await assert.rejects(importInto(location, text, text.length - 100), /the line was cut/);
      const other = sealed(lines.with(5, lines[5]?.replace("operator", "lulu@kamac") ?? ""));
      const refusal = { code: "conflict", message: /holds a part of another file; import that file/ };
      await assert.rejects(importInto(location, other), refusal);
      await assert.rejects(importInto(location, sealed(lines.slice(0, 10))), refusal);
      await importInto(location, text);
    });

    it("says in which lines a record stands that the store refuses", async () => {
      const records = readFileSync(GOLDEN, "utf8").split("\n").slice(0, -2);
      const index = records.findIndex((line) => line.startsWith('{"delivery"'));
      const without = records.filter(
        (line) => !line.startsWith('{"message":{"tenant":"default","id":"m-held"'),
      );
      for (const [lines, why] of [
        [records.toSpliced(index, 0, records[index] ?? ""), /UNIQUE|duplicate key/],
        [without, /its message is not in the file/],
      ] as const) {
        const last = lines.length;
        const message = new RegExp(
          `of lines 2 to ${last} one is refused \\(.*(?:${why.source}).*\\); it was changed`,
        );
        await assert.rejects(importInto(newLocation(), sealed(lines)), { code: "invalid_argument", message });
      }
    });
  });
}

async function progressOf(location: DataLocation): ReturnType<TransferTarget["progress"]> {
  await using target = await location.openTarget();
  return await target.progress();
}

describe("an import", () => {
  it("refuses a file that is not complete or was changed, with a sentence", async () => {
    const text = readFileSync(GOLDEN, "utf8");
    const lines = text.split("\n").slice(0, -1);
    const [header = "", ...rest] = lines;
    const files: readonly (readonly [file: string, sentence: RegExp])[] = [
      ["", /it is empty/],
      ["知微的笔记\n", /its first line is not the header of an export/],
      [text.replace('"version":1', '"version":2'), /the export has format version 2, this relay knows 1/],
      [
        `${lines.slice(0, -1).join("\n")}\n`,
        /not complete: it ends after line \d+ without a trailer; repeat the export/,
      ],
      [text.slice(0, text.length - 200), /not complete: it ends within line \d+; repeat the export/],
      [`${text}${rest[0]}\n`, /line \d+ follows the trailer/],
      [text.replace("知微你好", "知微再见"), /its lines are not those that the trailer digests/],
      [[header, ...rest.slice(1), ""].join("\n"), /has \d+ lines before the trailer, which counts \d+/],
      [sealed([header, '{"post_box":{}}']), /line 2 is not as a relay writes it/],
      [sealed([header, '{"tenant":{"id":"default"}}']), /line 2 is not as a relay writes it/],
    ];
    for (const [file, message] of files) {
      await assert.rejects(importInto(folder.newSqlite(), file), { code: "invalid_argument", message });
    }
  });

  it("refuses a second import into the same PostgreSQL database at the same time", async () => {
    const text = await manyLines();
    const location = newPostgres();
    await using slow = await location.openTarget();
    async function* overtaken(): AsyncGenerator<Uint8Array, void, void> {
      yield* chunksOf(text.slice(0, text.length / 2));
      await importInto(location, text);
      yield* chunksOf(text.slice(text.length / 2));
    }
    await assert.rejects(importAll(slow, overtaken(), QUIETLY), { code: "conflict" });
  });
});
