import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RELAY_URL, SETTINGS } from "./settings.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/reference/configuration.md"), "utf8");

/** `| variable | flag | default | …` rows without their code marks. */
const ROWS = PAGE.split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) =>
    line
      .split("|")
      .slice(1, 4)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );

describe("docs/reference/configuration.md", () => {
  it("lists every setting with its names and its default, and nothing else", () => {
    const settings = [...Object.values(SETTINGS), RELAY_URL].map(({ variables, flag, fallback }) => {
      const values = [fallback ?? ""].flat().map((value) => (typeof value === "object" ? "" : String(value)));
      const text = values.join().replace(homedir(), "~");
      return [variables[0], `--${flag}`, text === "" ? "none" : text];
    });
    assert.deepEqual(ROWS, settings);
  });

  it("names every other variable too", () => {
    const variables = Object.values(SETTINGS).flatMap((setting) => setting.variables);
    for (const variable of variables) assert.ok(PAGE.includes(`\`${variable}\``), variable);
  });
});
