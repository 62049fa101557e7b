import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { A2A_DIALECTS, A2A_ERRORS, A2A_OPERATIONS, type A2aVersion } from "@a2a-relay/protocol";

/** Compares the tables of docs/reference/a2a.md with the code. */

const PAGE = readFileSync(join(import.meta.dirname, "..", "..", "docs", "reference", "a2a.md"), "utf8");

/** The cells of the table below that heading, without its head. */
function tableBelow(heading: string): readonly (readonly string[])[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const rows = [...section.matchAll(/^\| (.*) \|$/gm)].map(([, row = ""]) => row.split(" | "));
  return rows.slice(2).map((cells) => cells.map((cell) => cell.replaceAll("`", "").trim()));
}

describe("the reference of A2A", () => {
  it("has every operation under the name that each version gives it", () => {
    const versions: readonly A2aVersion[] = ["1.0", "0.3", "0.1"];
    const named = A2A_OPERATIONS.map((operation) =>
      versions.map((version) => A2A_DIALECTS[version].methods[operation] ?? "—"),
    );
    assert.deepEqual(
      tableBelow("What is served").map((cells) => cells.slice(1, 1 + versions.length)),
      named,
    );
  });

  it("has every error of A2A with its code and statuses", () => {
    const rows = tableBelow("Errors").map(([name = "", code, http, grpc]) => [name, code, http, grpc]);
    const known = Object.entries(A2A_ERRORS)
      .filter(([, { code }]) => code > -32_100)
      .map(([name, { code, httpStatus, grpc }]) => [name, String(code), String(httpStatus), grpc]);
    assert.deepEqual(rows.slice(0, known.length), known);
  });
});
