import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Compares with `golden/<name>.json`, the order of members included; blanks are the formatter's. With UPDATE_GOLDEN=1
 * the file is written first: what changed is then seen in the diff.
 */
export function assertGolden(name: string, actual: unknown): void {
  const path = fileURLToPath(new URL(`golden/${name}.json`, import.meta.url));
  const written = JSON.stringify(actual, undefined, 2);
  // oxlint-disable-next-line node/no-process-env -- a switch of the person who runs the tests
  if (process.env["UPDATE_GOLDEN"] === "1") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${written}\n`);
  }
  const hint = `${name}.json: if the change is meant, run the test with UPDATE_GOLDEN=1 and then the formatter`;
  const pinned: unknown = JSON.parse(readFileSync(path, "utf8"));
  assert.equal(written, JSON.stringify(pinned, undefined, 2), hint);
}
