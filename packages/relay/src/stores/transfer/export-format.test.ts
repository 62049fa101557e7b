import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { headerLine, readHeader, readRecord, readTrailer, recordLine } from "./export-format.ts";
import { RECORD_KINDS, type RecordKind } from "./records.ts";

const PAGE = readFileSync(new URL("../../../../../docs/reference/export-format.md", import.meta.url), "utf8");

describe("docs/reference/export-format.md", () => {
  it("lists every kind of record with its key, in the order of the file", () => {
    const rows = [...PAGE.matchAll(/^\| `(\w+)` +\| ([^|]*) \| [^|]* \|$/gm)].map(([, kind, key]) => [
      kind,
      key?.trim(),
    ]);
    const kinds = Object.entries<RecordKind>(RECORD_KINDS).map(([kind, { key }]) => [
      kind,
      key?.map((column) => `\`${column}\``).join(", ") ?? "order of acceptance",
    ]);
    assert.deepEqual(rows, kinds);
  });

  it("shows lines as they are written", () => {
    const [header = "", ...rest] = (/^```json\n([^]*?)```$/m.exec(PAGE)?.[1] ?? "").trim().split("\n");
    const read = readHeader(header);
    assert.ok(read);
    // The page leaves the milliseconds out.
    assert.equal(headerLine(read).replace(".000Z", "Z"), header);
    assert.notEqual(readTrailer(rest.pop() ?? ""), undefined);
    for (const line of rest) {
      const record = readRecord(line);
      assert.ok(record, line);
      assert.equal(recordLine(record), line);
    }
  });
});
