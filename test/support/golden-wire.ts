import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const FOLDER = join(import.meta.dirname, "..", "golden");

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;

/** Names what is new in each run by the order in which it appears: the ids of one conversation stay apart. */
export class WireNames {
  readonly #names = new Map<string, string>();

  of(value: unknown): unknown {
    const text = JSON.stringify(value)
      .replace(ID, (id) => this.#named(id))
      .replace(TIME, "<time>");
    return JSON.parse(text);
  }

  #named(id: string): string {
    const known = this.#names.get(id) ?? `<id-${this.#names.size + 1}>`;
    this.#names.set(id, known);
    return known;
  }
}

/**
 * Compares with `golden/<name>.json`, the order of members included. With UPDATE_GOLDEN=1 the file is written first:
 * what changed is then seen in the diff.
 */
export function assertGoldenWire(name: string, actual: unknown): void {
  const path = join(FOLDER, `${name}.json`);
  const written = JSON.stringify(actual, undefined, 2);
  if (process.env["UPDATE_GOLDEN"] === "1") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${written}\n`);
  }
  const hint = `${name}.json: if the change is meant, run the test with UPDATE_GOLDEN=1 and then the formatter`;
  const pinned: unknown = JSON.parse(readFileSync(path, "utf8"));
  assert.equal(written, JSON.stringify(pinned, undefined, 2), hint);
}
