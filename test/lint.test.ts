import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { CORE_ROOMS, lintConfig, RELAY_FOLDERS, TRANSPORT_ROOMS } from "../scripts/lint-config.ts";

const ROOT = join(import.meta.dirname, "..");
const TIMEOUT_MS = 60_000;

interface Case {
  /** The folder of packages, or of the relay's sources, in which the line is written. */
  readonly folder: string;
  readonly line: string;
  /** The name of the file, where that matters. */
  readonly name?: string;
}

const LAYERING = "eslint(no-restricted-imports)";
const CORE = "packages/relay/src/core/agents";
const STORES = "packages/relay/src/stores/sqlite";
const TRANSPORTS = "packages/relay/src/transports/http";
const EGRESS = "packages/relay/src/transports/egress";
const STREAMS = "packages/relay/src/transports/streams";
const BACKGROUND = "packages/relay/src/background";
const CONFIG = "packages/relay/src/config";
const CASSETTES = "packages/relay/src/cassettes";
const CLI = "packages/relay/src/cli";
const SERVER = "packages/relay/src/server";

const HTTP_TYPE = `import type { Server } from "node:http";\nexport type A = Server;`;

const FORBIDDEN_IMPORTS: readonly (readonly [folder: string, specifiers: readonly string[]])[] = [
  ["packages/protocol/src", ["node:crypto", "node:fs", "fastify", "@a2a-relay/client", "typebox/compile"]],
  [
    "packages/client/src",
    ["node:crypto", "node:timers/promises", "undici", "typebox", "a2a-relay", "@a2a-js/sdk"],
  ],
  [CORE, ["node:fs", "node:timers/promises", "node:sqlite", "fastify", "pino", "@a2a-relay/client"]],
  [CORE, ["../../stores/a.ts", "../../transports/a.ts", "../../server/a.ts", "../../background/a.ts"]],
  [CORE, ["../../config/a.ts", "../../cli/a.ts", "../../../testing/a.ts", "./a.test.ts"]],
  [CORE, ["../relay-core.ts", "../a2a/a.ts", "../messages/a.ts", "../tasks/a.ts", "../keys/a.ts"]],
  ["packages/relay/src/core/tasks", ["../mailboxes/a.ts", "../outbound/a.ts"]],
  ["packages/relay/src/core/ports", ["../rules/a.ts", "../mechanisms/a.ts"]],
  [STORES, ["../../core/tasks/a.ts", "../../core/messages/a.ts", "../../core/outbound/a.ts"]],
  [STORES, ["../../transports/a.ts", "../../server/a.ts", "../../background/a.ts", "../../config/a.ts"]],
  [STORES, ["../../cli/a.ts", "fastify", "@a2a-relay/client", "../../../testing/a.ts"]],
  [TRANSPORTS, ["../../stores/a.ts", "../../server/a.ts", "../../background/a.ts", "../../config/a.ts"]],
  [TRANSPORTS, ["../../cli/a.ts", "node:sqlite", "commander", "@a2a-relay/client"]],
  [TRANSPORTS, ["../streams/a.ts", "../a2a/a.ts", "../grpc/a.ts", "../task-queue/a.ts"]],
  [STREAMS, ["../a2a/a.ts", "../grpc/a.ts"]],
  [BACKGROUND, ["../stores/a.ts", "../transports/a.ts", "../server/a.ts", "../config/a.ts", "../cli/a.ts"]],
  [BACKGROUND, ["fastify", "../../testing/a.ts"]],
  [CONFIG, ["../core/a.ts", "../stores/a.ts", "../transports/a.ts", "../server/a.ts", "../background/a.ts"]],
  [
    CASSETTES,
    ["../core/a.ts", "../server/a.ts", "../cli/a.ts", "../config/a.ts", "fastify", "../../testing/a.ts"],
  ],
  [CLI, ["../core/a.ts", "../stores/a.ts", "../transports/http/a.ts", "../background/a.ts"]],
  [CLI, ["fastify", "@fastify/swagger", "node:sqlite"]],
  [SERVER, ["../cli/a.ts", "../../testing/a.ts"]],
  ["packages/relay/src", ["./a.test.ts", "../testing/a.ts"]],
  [EGRESS, ["../../stores/a.ts", "../../server/a.ts", "../../../testing/a.ts", "node:sqlite", "commander"]],
  ...[CORE, STORES, TRANSPORTS, STREAMS, BACKGROUND, CONFIG, CLI, SERVER].map(
    (folder) => [folder, ["undici", "node:http", "node:https", "node:http2"]] as const,
  ),
];

const ALLOWED_IMPORTS: readonly (readonly [folder: string, specifiers: readonly string[]])[] = [
  ["packages/protocol/src", ["typebox", "./a.ts"]],
  ["packages/client/src", ["@a2a-relay/protocol", "./a.ts"]],
  [CORE, ["@a2a-relay/protocol", "typebox", "typebox/compile", "node:crypto", "./a.ts"]],
  [CORE, ["../access/a.ts", "../rules/a.ts", "../ports/a.ts"]],
  [STORES, ["@a2a-relay/protocol", "node:sqlite", "node:fs/promises", "./a.ts"]],
  [STORES, ["../../core/ports/a.ts", "../../core/rules/a.ts"]],
  [TRANSPORTS, ["@a2a-relay/protocol", "fastify", "node:stream", "./a.ts", "../../core/tasks/a.ts"]],
  [STREAMS, ["../http/a.ts", "../../core/a2a/a.ts"]],
  ["packages/relay/src/transports/a2a", ["../http/a.ts", "../streams/a.ts", "../../core/a2a/a.ts"]],
  [EGRESS, ["@a2a-relay/protocol", "undici", "node:http", "node:tls", "../../core/ports/a.ts"]],
  [BACKGROUND, ["@a2a-relay/protocol", "node:fs/promises", "./a.ts", "../core/tasks/a.ts"]],
  [CONFIG, ["@a2a-relay/protocol", "node:fs", "./a.ts"]],
  [CASSETTES, ["@a2a-relay/client", "@a2a-relay/protocol", "yaml", "node:fs/promises", "./a.ts"]],
  [CLI, ["@a2a-relay/client", "commander", "node:fs", "../config/a.ts", "../server/a.ts"]],
  [SERVER, ["../core/tasks/a.ts", "../stores/sqlite/a.ts", "../transports/http/a.ts", "../config/a.ts"]],
];

const FORBIDDEN: readonly (readonly [title: string, rule: string, example: Case])[] = [
  [
    "another way to import from a forbidden folder",
    LAYERING,
    { folder: CORE, line: `export * from "../../stores/a.ts";` },
  ],
  ["a lazy import of one", LAYERING, { folder: CORE, line: `export const a = import("../../stores/a.ts");` }],
  [
    "an import that hides inside a type",
    "typescript(consistent-type-imports)",
    { folder: CORE, line: `export type A = import("../../stores/a.ts").A;` },
  ],
  [
    "a dropped promise of our own",
    "typescript(no-floating-promises)",
    {
      folder: SERVER,
      line: `async function work(): Promise<void> {}\nexport function a(): void { work(); }`,
    },
  ],
  [
    "a dropped promise of node:timers/promises",
    "typescript(no-floating-promises)",
    {
      folder: SERVER,
      line: `import { setTimeout } from "node:timers/promises";\nexport function a(): void { setTimeout(1); }`,
    },
  ],
  [
    "a dropped promise of node:fs/promises",
    "typescript(no-floating-promises)",
    {
      folder: SERVER,
      line: `import { rm } from "node:fs/promises";\nexport function a(): void { rm("a"); }`,
    },
  ],
  [
    "a promise where a condition is expected",
    "typescript(no-misused-promises)",
    {
      folder: SERVER,
      line: `import { stat } from "node:fs/promises";\nexport const a = (): number => (stat("a") ? 1 : 2);`,
    },
  ],
  [
    "any",
    "typescript(no-explicit-any)",
    { folder: CORE, line: `export function a(input: any): void { void input; }` },
  ],
  ["==", "eslint(eqeqeq)", { folder: CORE, line: `export const a = (b: unknown): boolean => b == 1;` }],
  [
    "the environment outside config/",
    "node(no-process-env)",
    { folder: CLI, line: `export const a = process.env["PORT"];` },
  ],
  ["console outside cli/", "eslint(no-console)", { folder: SERVER, line: `console.log("a");` }],
  [
    "a file of more than 400 lines",
    "eslint(max-lines)",
    { folder: CORE, line: "export const a = 1;\n" + "// Padding.\n".repeat(400) },
  ],
  [
    "a function of more than 70 lines",
    "eslint(max-lines-per-function)",
    { folder: CORE, line: `export function a(): void {\n${"  void 0;\n".repeat(70)}}` },
  ],
  [
    "a file name in camel case",
    "unicorn(filename-case)",
    { folder: CORE, line: `export const a = 1;`, name: "agentStore.ts" },
  ],
  [
    "a call out past the egress",
    "eslint(no-restricted-globals)",
    { folder: SERVER, line: `await fetch("a");` },
  ],
  [
    "a way to call out beside what a transport may take of node:http",
    LAYERING,
    {
      folder: TRANSPORTS,
      line: `import { request, STATUS_CODES } from "node:http";\nrequest(STATUS_CODES);`,
    },
  ],
  ["a default export", "import(no-default-export)", { folder: CORE, line: `export default 1;` }],
];

const ALLOWED: readonly (readonly [title: string, example: Case])[] = [
  ["the environment in config/", { folder: CONFIG, line: `export const a = process.env["PORT"];` }],
  ["console in cli/", { folder: CLI, line: `console.log("a");` }],
  [
    "a test in core/ that uses a store",
    { folder: CORE, line: importOf("../../stores/a.ts"), name: "a.test.ts" },
  ],
  ...[TRANSPORTS, STREAMS, SERVER].map(
    (folder) => [`types of node:http in ${folder}`, { folder, line: HTTP_TYPE }] as const,
  ),
  [
    "the names of statuses in a transport",
    {
      folder: TRANSPORTS,
      line: `import { STATUS_CODES } from "node:http";\nexport const a = STATUS_CODES[404];`,
    },
  ],
  [
    "types of the A2A SDK in the client",
    {
      folder: "packages/client/src",
      line: `import type { Task } from "@a2a-js/sdk";\nexport type A = Task;`,
    },
  ],
  ["the command line to call its relay", { folder: CLI, line: `export const a = await fetch("a");` }],
  ["a promise that is waited for", { folder: SERVER, line: `export const a = async () => { await b(); };` }],
];

describe("the linter", { timeout: TIMEOUT_MS }, () => {
  const cases: Case[] = [];
  let folder: string;
  let found: ReadonlyMap<string, readonly string[]>;

  const fileOf = (example: Case): string =>
    join(example.folder, example.name ?? `case-${cases.indexOf(example)}.ts`);
  const add = (example: Case): Case => {
    cases.push(example);
    return example;
  };
  const rulesFor = (example: Case): readonly string[] => found.get(fileOf(example)) ?? [];

  before(async () => {
    folder = await makeTree(cases.map((example) => [fileOf(example), example.line]));
    found = lint(folder);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  for (const [where, specifiers] of FORBIDDEN_IMPORTS) {
    const examples = specifiers.map((specifier) => add({ folder: where, line: importOf(specifier) }));
    it(`lets nothing in ${where} import ${specifiers.join(", ")}`, () => {
      for (const example of examples) assert.ok(rulesFor(example).includes(LAYERING), example.line);
    });
  }

  for (const [where, specifiers] of ALLOWED_IMPORTS) {
    const examples = specifiers.map((specifier) => add({ folder: where, line: importOf(specifier) }));
    it(`lets ${where} import ${specifiers.join(", ")}`, () => {
      for (const example of examples) assert.ok(!rulesFor(example).includes(LAYERING), example.line);
    });
  }

  for (const [title, rule, example] of FORBIDDEN) {
    add(example);
    it(`refuses ${title}`, () => {
      assert.ok(rulesFor(example).includes(rule), `found only: ${rulesFor(example).join(", ")}`);
    });
  }

  for (const [title, example] of ALLOWED) {
    add(example);
    it(`allows ${title}`, () => {
      const ours = [
        LAYERING,
        "node(no-process-env)",
        "eslint(no-console)",
        "eslint(no-restricted-globals)",
        "typescript(no-floating-promises)",
      ];
      assert.deepEqual(
        rulesFor(example).filter((rule) => ours.includes(rule)),
        [],
      );
    });
  }
});

describe("the linter's configuration", () => {
  it("is the one that scripts/lint-config.ts writes", () => {
    const committed = readFileSync(join(ROOT, ".oxlintrc.jsonc"), "utf8");
    assert.equal(committed, lintConfig(), "run: node scripts/lint-config.ts");
  });

  const SRC = "packages/relay/src";
  for (const [folder, named] of [
    [SRC, Object.keys(RELAY_FOLDERS)],
    [`${SRC}/core`, CORE_ROOMS.flat()],
    [`${SRC}/transports`, TRANSPORT_ROOMS.flat()],
  ] as const) {
    it(`has a layer for each folder of ${folder}`, async () => {
      const entries = await readdir(join(ROOT, folder), { withFileTypes: true });
      const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
      for (const name of folders) assert.ok(named.includes(name), `${folder}/${name} is in no layer`);
    });
  }
});

function importOf(specifier: string): string {
  return `import { a } from "${specifier}";\nexport const b = a;`;
}

/** A tree with the project's shape and settings, whose files are the cases. */
async function makeTree(files: readonly (readonly [path: string, text: string])[]): Promise<string> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "a2a-relay-lint-")));
  for (const name of [".oxlintrc.jsonc", "tsconfig.json"]) await cp(join(ROOT, name), join(root, name));
  await symlink(join(ROOT, "node_modules"), join(root, "node_modules"), "junction");
  for (const [path, text] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), `${text}\n`);
  }
  return root;
}

/** The rules each file broke. */
function lint(cwd: string): ReadonlyMap<string, readonly string[]> {
  const linter = join(ROOT, "node_modules", "oxlint", "bin", "oxlint");
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [linter, "--type-aware", "--format=json", "packages"],
    {
      cwd,
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  assert.ok(stdout.startsWith("{"), stdout + stderr);
  const { diagnostics } = JSON.parse(stdout) as {
    readonly diagnostics: readonly { readonly code: string; readonly filename: string }[];
  };
  const byFile = Map.groupBy(diagnostics, ({ filename }) => join(filename));
  return new Map([...byFile].map(([file, list]) => [file, list.map(({ code }) => code)]));
}
