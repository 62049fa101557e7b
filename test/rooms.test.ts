import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { assertNone, assertNowhere, lineOf, sources } from "./support/tree.ts";

/** Folders of the packages: they depend on each other in one direction, and each can be surveyed. */

const FOLDER_FILES_MAX = 20;

const CORE = "packages/relay/src/core/";
const WIRE_IN_CORE = [
  // Stored text, which digests and hashes cover.
  "mechanisms/stored-json.ts",
  // Names as one key.
  "mechanisms/joined-key.ts",
  // The parts of a message as the text of a body.
  "queue/queue-mapping.ts",
];

interface Import {
  readonly from: string;
  readonly to: string;
  /** `file:line specifier`. */
  readonly where: string;
}

describe("the folders of the packages", () => {
  it("have no cycles, type imports counted", () => {
    const imports = [...sources].flatMap(([path, text]) => importsOf(path, text));
    const cycles = cyclesOf(imports);
    assertNone(
      cycles.flatMap((folders) => [
        `a cycle of ${folders.join(", ")}:`,
        ...imports
          .filter(({ from, to }) => folders.includes(from) && folders.includes(to))
          .map(({ where, to }) => `  ${where} (${to})`),
      ]),
    );
  });

  it(`have at most ${FOLDER_FILES_MAX} sources each`, () => {
    const byFolder = Map.groupBy(sources.keys(), (path) => dirname(path));
    const full = [...byFolder].filter(([, paths]) => paths.length > FOLDER_FILES_MAX);
    assertNone(full.map(([folder, paths]) => `${folder} has ${paths.length} sources`));
  });

  it("declare each exported type once in a package", () => {
    const declared = [...sources].flatMap(([path, text]) =>
      [...text.matchAll(/^export (?:declare |abstract )*(?:interface|type|class) (\w+)/gm)].map((match) => ({
        key: `${groupOf(path)} ${match[1]}`,
        where: `${path}:${lineOf(text, match.index)}`,
      })),
    );
    const repeated = [...Map.groupBy(declared, ({ key }) => key)].filter(([, list]) => list.length > 1);
    assertNone(repeated.map(([key, list]) => `${key}: ${list.map(({ where }) => where).join(", ")}`));
  });
});

/** The package; each store beside others is a group of its own, with the same parts. */
function groupOf(path: string): string {
  return /^packages\/relay\/src\/stores\/\w+/.exec(path)?.[0] ?? path.split("/")[1] ?? "";
}

describe("the core", () => {
  const core = new Map([...sources].filter(([path]) => path.startsWith(CORE)));

  it("knows no HTTP status", () => {
    // Without 200, 300, 400 and 500, which are limits too.
    assertNowhere(/(?<![\w.])(?:20[1-8]|30[1-8]|40[1-9]|41[0-9]|42[0-9]|50[1-9])(?![\w.])/, "a status", core);
  });

  it("returns values: no JSON text and no HTTP header, but for the files that say why", () => {
    const silent = [...core].filter(([path]) => !WIRE_IN_CORE.some((known) => path.startsWith(CORE + known)));
    assertNowhere(/\bJSON\.(?:parse|stringify)\b/, "JSON text", new Map(silent));
    assertNowhere(
      /"(?:accept|authorization|content-type|retry-after|user-agent)"/,
      "a header",
      new Map(silent),
    );
  });
});

/** The imports of a source from other folders. */
function importsOf(path: string, text: string): readonly Import[] {
  const from = dirname(path);
  return [...text.matchAll(/\b(?:from|import) ?\(?"(\.[^"]+)"/g)].flatMap((match) => {
    const specifier = match[1] ?? "";
    const to = dirname(join(from, specifier));
    return to === from ? [] : [{ from, to, where: `${path}:${lineOf(text, match.index)} ${specifier}` }];
  });
}

/** Groups of folders that reach each other. */
function cyclesOf(imports: readonly Import[]): readonly (readonly string[])[] {
  const next = Map.groupBy(imports, ({ from }) => from);
  const reached = new Map<string, ReadonlySet<string>>();
  for (const start of next.keys()) {
    const seen = new Set<string>();
    const open = [start];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      for (const { to } of next.get(folder) ?? []) {
        if (seen.has(to)) continue;
        seen.add(to);
        open.push(to);
      }
    }
    reached.set(start, seen);
  }
  const inCycle = [...reached].filter(([folder, seen]) => seen.has(folder)).map(([folder]) => folder);
  const groups = Map.groupBy(inCycle, (folder) =>
    inCycle.find((other) => reached.get(other)?.has(folder) && reached.get(folder)?.has(other)),
  );
  return [...groups.values()];
}
