import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The project's files as git has them, for tests that check the text of the project itself. */

export const ROOT = join(import.meta.dirname, "..", "..");
export const LINE_CHARS_MAX = 120;

/** Not text, or written by a tool for itself. */
const NOT_OURS = /^package-lock\.json$|^test\/golden\/|\.(?:gif|ico|jpe?g|png|woff2?)$/;

/** Tracked files and new ones; ignored files are left out. */
export const files: readonly string[] = listFiles();
export const texts: ReadonlyMap<string, string> = new Map(
  files.filter((path) => !NOT_OURS.test(path)).map((path) => [path, read(path)]),
);

/** Sources that are shipped: no tests, no test support. */
export const sources: ReadonlyMap<string, string> = new Map(
  [...texts].filter(([path]) => /^packages\/\w+\/src\/.*(?<!\.test)\.ts$/.test(path)),
);

export function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** Fails with one line for each finding, as `file:line message`. */
export function assertNone(findings: readonly string[]): void {
  assert.equal(findings.length, 0, `\n${findings.join("\n")}`);
}

/** Tries the pattern on each line, so that the failure can say where. */
export function assertNowhere(
  pattern: RegExp,
  what: string,
  where: ReadonlyMap<string, string> = texts,
): void {
  assertNone(
    [...where].flatMap(([path, text]) =>
      text
        .split("\n")
        .flatMap((line, index) => (pattern.test(line) ? [at(path, index + 1, `has ${what}`, line)] : [])),
    ),
  );
}

export function at(path: string, line: number, what: string, text: string): string {
  return `${path}:${line} ${what}: ${text.trim().slice(0, LINE_CHARS_MAX)}`;
}

/** The line, counted from 1, of a position in a text. */
export function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function listFiles(): readonly string[] {
  const words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).split("\0");
  return listed.filter((path) => path !== "" && existsSync(join(ROOT, path))).toSorted();
}
