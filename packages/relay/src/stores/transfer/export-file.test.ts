import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import { sendOnRecord } from "../../../testing/populated-store.ts";
import { linesIn, recordsIn, TransferFolder } from "../../../testing/transfer-files.ts";

const folder = new TransferFolder();
after(() => folder[Symbol.dispose]());

describe("an export", () => {
  it("can be read only by its owner", async () => {
    const path = folder.newPath("export.ndjson");
    writeFileSync(path, "", { mode: 0o644 });
    await folder.exported(await folder.populated(), path);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });
});

describe("an export that was interrupted", () => {
  it("is continued wherever it ended", async () => {
    const location = await folder.populated();
    const path = await folder.exported(location);
    const whole = readFileSync(path);
    const header = whole.indexOf("\n") + 1;
    const message = whole.indexOf('{"message"');
    for (const length of [0, header, message, message + 7, whole.indexOf("知微你好") + 1, whole.length - 1]) {
      writeFileSync(path, whole.subarray(0, length));
      await folder.exported(location, path);
      if (length === 0) assert.deepEqual(recordsIn(path), whole.toString().split("\n").slice(1, -2));
      else assert.deepEqual(readFileSync(path), whole);
    }
  });

  it("is written anew from the first line that has changed since", async () => {
    const location = await folder.populated();
    const path = await folder.exported(location);
    const begun = linesIn(path).slice(0, -5);
    // Presence is not in the journal, so the heads stay.
    const changed = begun.map((line) => line.replace(/("last_seen_at_ms":)\d+/, "$11"));
    writeFileSync(path, `${changed.join("\n")}\n`);
    await folder.exported(location, path);
    assert.deepEqual(linesIn(path).slice(0, begun.length), begun);
    writeFileSync(path, `${begun.join("\n")}\n`);
    {
      await using store = await location.openStore();
      await sendOnRecord(store, [{ id: "m-new" }]);
    }
    await folder.exported(location, path);
    const other = await folder.exported(location);
    assert.deepEqual(recordsIn(path), recordsIn(other));
  });

  it("is never continued in a complete export, or in another file", async () => {
    const location = await folder.populated();
    const path = await folder.exported(location);
    const again = folder.exported(location, path);
    await assert.rejects(again, {
      code: "conflict",
      message: `${path} is a complete export already; choose another name`,
    });
    rmSync(path);
    writeFileSync(path, "知微的笔记\n", { mode: 0o644 });
    const over = folder.exported(location, path);
    await assert.rejects(over, {
      code: "conflict",
      message: `${path} exists already and is no export; choose another name`,
    });
    assert.equal(readFileSync(path, "utf8"), "知微的笔记\n");
    assert.equal(statSync(path).mode & 0o777, 0o644);
  });
});
