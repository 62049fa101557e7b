import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Writes `.oxlintrc.jsonc`: the rules and the table of layers below. A test fails when the two differ.
 *
 *   node scripts/lint-config.ts
 */

/** A pattern of `no-restricted-imports`. Of several, the first that speaks about an import decides. */
interface ImportPattern {
  readonly regex?: string;
  readonly group?: readonly string[];
  readonly message: string;
  readonly allowTypeImports?: boolean;
  readonly allowImportNames?: readonly string[];
}

interface Layer {
  readonly files: readonly string[];
  /** What it may not import, the forbidden folders before the list of allowed packages. */
  readonly patterns: readonly ImportPattern[];
}

const RELAY = "packages/relay/src";

/** Folder of the relay → the folders that it may import besides itself. */
export const RELAY_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  background: ["core"],
  cassettes: [],
  cli: ["cassettes", "config", "server"],
  config: [],
  core: [],
  server: ["background", "cassettes", "config", "core", "stores", "transports"],
  stores: ["core"],
  transports: ["core"],
};

const FOLDER_REASONS: Readonly<Record<string, string>> = {
  background: "What runs by itself calls the core alone.",
  cassettes: "A scripted agent is an agent like any other: it talks to a relay through the client.",
  cli: "The command line starts the server or talks to one through the client.",
  config: "Settings are read before anything else exists.",
  core: "The core knows nothing of what is built around it.",
  server: "The server is embeddable; the command line is only one of its users.",
  stores: "A store serves the core's ports and knows the core alone.",
  transports: "A transport calls the core and knows the core alone.",
};

/** Rooms from top to bottom: each line may import the lines below it, never its own line or one above. */
export const CORE_ROOMS: readonly (readonly string[])[] = [
  ["a2a", "queue"],
  ["messages"],
  ["outbound"],
  ["mailboxes", "tasks"],
  ["registration"],
  ["discovery", "journal", "keys"],
  ["agents"],
  ["access"],
  ["rules"],
  ["mechanisms"],
  ["ports"],
];
export const TRANSPORT_ROOMS: readonly (readonly string[])[] = [
  ["grpc"],
  ["a2a", "task-queue"],
  ["streams"],
  ["http"],
  ["outbound"],
  ["egress", "gateway"],
];
/** The rooms of the core that a store may import. */
const STORE_ROOMS = ["mechanisms", "ports", "rules"];

const NO_TESTS: ImportPattern = {
  regex: "/testing/|\\.test\\.ts$",
  message: "What is shipped does not import its tests.",
};

const EGRESS_ONLY = "Only transports/egress calls out, because only it checks the address.";
const NO_HTTP: ImportPattern = { regex: "^(undici|node:http2?|node:https)(/|$)", message: EGRESS_ONLY };
const NO_UNDICI: ImportPattern = { regex: "^undici(/|$)", message: EGRESS_ONLY };
const HTTP_TYPES: ImportPattern = {
  regex: "^node:(http2?|https)$",
  allowTypeImports: true,
  message: EGRESS_ONLY,
};

const NODE = ["node:*", "node:*/*"];

function only(packages: readonly string[], message: string): ImportPattern {
  return { group: ["*", ...packages.map((name) => `!${name}`), "!./**", "!../**"], message };
}

function notFolders(names: readonly string[], message: string): readonly ImportPattern[] {
  return names.length === 0 ? [] : [{ regex: `^(\\.\\./)+(${names.join("|")})/`, message }];
}

/** Forbids the folders of the relay that the table does not allow. */
function outside(folder: string): readonly ImportPattern[] {
  const allowed = RELAY_FOLDERS[folder] ?? [];
  const forbidden = Object.keys(RELAY_FOLDERS).filter((name) => name !== folder && !allowed.includes(name));
  return notFolders(forbidden, FOLDER_REASONS[folder] ?? "");
}

/** Rooms that a room may not import: its neighbours on its line and all above. */
function above(rooms: readonly (readonly string[])[], room: string): readonly string[] {
  const line = rooms.findIndex((names) => names.includes(room));
  return rooms
    .slice(0, line + 1)
    .flat()
    .filter((name) => name !== room);
}

function coreLayers(): readonly Layer[] {
  const common = [
    NO_TESTS,
    ...outside("core"),
    only(
      ["@a2a-relay/protocol", "typebox", "typebox/compile", "ipaddr.js", "node:crypto"],
      "The core does no I/O: time, ids, storage and the network come in through its ports.",
    ),
  ];
  const message =
    "Each room of the core imports only rooms below it; scripts/lint-config.ts has their order.";
  const rooms = CORE_ROOMS.flat().map((room) => ({
    files: [`${RELAY}/core/${room}/**`],
    patterns: [
      { regex: "^(\\.\\./)+relay-core\\.ts$", message },
      ...notFolders(above(CORE_ROOMS, room), message),
      ...common,
    ],
  }));
  return [{ files: [`${RELAY}/core/*.ts`], patterns: common }, ...rooms];
}

function transportLayers(): readonly Layer[] {
  const message = "Each transport imports only those below it; scripts/lint-config.ts has their order.";
  const calls = (room: string): readonly ImportPattern[] =>
    room === "egress" ? [] : [NO_UNDICI, { ...HTTP_TYPES, allowImportNames: ["STATUS_CODES"] }];
  const patterns = (room: string): readonly ImportPattern[] => [
    NO_TESTS,
    ...calls(room),
    ...outside("transports"),
    {
      group: ["@a2a-relay/client", "commander", "node:sqlite"],
      message: "A transport reads its wire, calls the core and writes its wire.",
    },
  ];
  const rooms = TRANSPORT_ROOMS.flat().map((room) => ({
    files: [`${RELAY}/transports/${room}/**`],
    // `../../core/a2a` is not `../a2a`.
    patterns: [
      ...above(TRANSPORT_ROOMS, room).map((name) => ({ regex: `^\\.\\./${name}/`, message })),
      ...patterns(room),
    ],
  }));
  return [{ files: [`${RELAY}/transports/*.ts`], patterns: patterns("") }, ...rooms];
}

const LAYERS: readonly Layer[] = [
  {
    files: ["packages/protocol/src/**"],
    patterns: [NO_TESTS, only(["typebox"], "The protocol does no I/O and depends on typebox alone.")],
  },
  {
    files: ["packages/client/src/**"],
    patterns: [
      NO_TESTS,
      {
        regex: "^@a2a-js/sdk(/|$)",
        allowTypeImports: true,
        message: "The A2A SDK is an optional dependency: import it when an executor is served.",
      },
      only(
        ["@a2a-relay/protocol", "@a2a-js/**", "eventsource-parser", "eventsource-parser/*"],
        "The client runs in browsers: it depends on the protocol, and on nothing of Node.",
      ),
    ],
  },
  ...coreLayers(),
  ...transportLayers(),
  {
    files: [`${RELAY}/stores/**`],
    patterns: [
      NO_TESTS,
      NO_HTTP,
      ...outside("stores"),
      {
        regex: `^(\\.\\./)+core/(${CORE_ROOMS.flat()
          .filter((room) => !STORE_ROOMS.includes(room))
          .join("|")})/`,
        message: "A store knows the core's ports and the rules that rooms share.",
      },
      only(
        ["@a2a-relay/protocol", "pg", ...NODE],
        "A store depends on its database alone; name its driver here.",
      ),
    ],
  },
  {
    files: [`${RELAY}/background/**`],
    patterns: [
      NO_TESTS,
      NO_HTTP,
      ...outside("background"),
      only(
        ["@a2a-relay/protocol", ...NODE],
        "What runs by itself calls the core; name here what else it needs.",
      ),
    ],
  },
  { files: [`${RELAY}/config/**`], patterns: [NO_TESTS, NO_HTTP, ...outside("config")] },
  {
    files: [`${RELAY}/cassettes/**`],
    patterns: [
      NO_TESTS,
      NO_HTTP,
      ...outside("cassettes"),
      only(
        ["@a2a-relay/client", "@a2a-relay/protocol", "yaml", ...NODE],
        "A scripted agent depends on the client; name here what else it needs.",
      ),
    ],
  },
  {
    files: [`${RELAY}/cli/**`],
    patterns: [
      NO_TESTS,
      NO_HTTP,
      ...outside("cli"),
      { group: ["fastify", "@fastify/*", "node:sqlite"], message: FOLDER_REASONS["cli"] ?? "" },
    ],
  },
  {
    // Only the server, and the index of the package, know every part.
    files: [`${RELAY}/server/**`, `${RELAY}/*.ts`],
    patterns: [NO_TESTS, NO_UNDICI, HTTP_TYPES, ...outside("server")],
  },
];

/** Tests may import what they like. */
const TESTS = "**/*.test.ts";

const RULES = {
  // A promise that is not awaited is how a relay loses messages: it fails unseen, or ends after the answer.
  "typescript/no-floating-promises": [
    "error",
    {
      // The runner of node:test waits for these itself.
      allowForKnownSafeCalls: [
        {
          from: "package",
          package: "node:test",
          name: ["after", "afterEach", "before", "beforeEach", "describe", "it", "test"],
        },
      ],
    },
  ],
  "typescript/no-misused-promises": "error",
  // The reason of an AbortSignal is passed on unchanged.
  "typescript/prefer-promise-reject-errors": [
    "error",
    { allowThrowingAny: true, allowThrowingUnknown: true },
  ],
  "typescript/return-await": ["error", "error-handling-correctness-only"],
  "typescript/only-throw-error": "error",
  "typescript/use-unknown-in-catch-callback-variable": "error",

  // `any` switches the compiler off wherever it flows.
  "typescript/no-explicit-any": "error",
  "typescript/no-non-null-assertion": "error",
  "typescript/no-unsafe-argument": "error",
  "typescript/no-unsafe-assignment": "error",
  "typescript/no-unsafe-call": "error",
  "typescript/no-unsafe-member-access": "error",
  "typescript/no-unsafe-return": "error",
  "typescript/ban-ts-comment": "error",
  "typescript/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
  "typescript/prefer-nullish-coalescing": "error",
  "typescript/no-deprecated": "error",
  // Without `import("…")` in types, every import is a line that the layering rules see.
  "typescript/consistent-type-imports": ["error", { fixStyle: "inline-type-imports" }],

  // `== null` is the one short way to say "null or undefined", as wires have both.
  eqeqeq: ["error", "always", { null: "ignore" }],
  "no-console": "error",
  "no-nested-ternary": "error",
  "no-param-reassign": "error",
  "no-var": "error",
  "object-shorthand": "error",
  "prefer-const": "error",
  "import/no-cycle": "error",
  "import/no-default-export": "error",
  // Settings are read once, at the edge, and passed on.
  "node/no-process-env": "error",
  "unicorn/no-abusive-eslint-disable": "error",
  "unicorn/prefer-node-protocol": "error",

  // What is too long to be read at once.
  "max-depth": ["error", 4],
  "max-lines": ["error", { max: 400 }],
  "max-lines-per-function": ["error", { max: 70 }],
  "unicorn/filename-case": ["error", { case: "kebabCase" }],

  // Switched off, each for its reason.
  // Sequence is often the point: order within a mailbox, one commit before the next.
  "no-await-in-loop": "off",
  // Parsers and row mappers narrow what they have just checked; no rule can tell them from the rest.
  "typescript/no-unsafe-type-assertion": "off",
  // Small functions stand beside their only caller, also where that is inside a function.
  "unicorn/consistent-function-scoping": "off",
  // The runtime's hooks and the CLI's entry are imported for their effect.
  "import/no-unassigned-import": "off",
  // It takes the rejection in a `catch` for a second one.
  "promise/no-multiple-resolved": "off",
  // Metrics enter their registry when they are made.
  "no-new": "off",
  // An underscore marks a name that is required and unused.
  "no-underscore-dangle": "off",
  // A copy is the price of immutable data.
  "oxc/no-map-spread": "off",
  // A list of three words reads better as a list.
  "unicorn/prefer-set-has": "off",
  // fast-check is written `fc.integer()` everywhere, in its own documents too.
  "import/no-named-as-default-member": "off",
} as const;

const EXCEPTIONS = [
  {
    // Calls go through transports/egress. The command line calls its own relay.
    files: [`${RELAY}/**`],
    excludeFiles: [`${RELAY}/cli/**`, TESTS],
    rules: { "no-restricted-globals": ["error", "fetch", "WebSocket", "EventSource"] },
  },
  {
    files: [`${RELAY}/config/**`, "bench/**", "examples/**", "scripts/**", "test/**"],
    rules: { "node/no-process-env": "off" },
  },
  {
    // Programs that people start print to people.
    files: [`${RELAY}/cli/**`, "bench/**", "examples/**", "scripts/**", "test/crash/**"],
    rules: { "no-console": "off" },
  },
  {
    // The runner makes a suite one function.
    files: [TESTS, "packages/*/testing/**", "test/**"],
    rules: { "max-lines-per-function": "off" },
  },
  {
    // The launcher is plain JavaScript, outside the compiler's sight, and decides before there are settings.
    files: ["packages/relay/bin/*.js"],
    rules: {
      "node/no-process-env": "off",
      "typescript/no-unsafe-argument": "off",
      "typescript/no-unsafe-assignment": "off",
      "typescript/no-unsafe-call": "off",
      "typescript/no-unsafe-member-access": "off",
      "typescript/no-unsafe-return": "off",
    },
  },
];

/** The text of `.oxlintrc.jsonc`: one rule or one override on a line. */
export function lintConfig(): string {
  const layering = LAYERS.map(({ files, patterns }) => ({
    files,
    excludeFiles: [TESTS],
    rules: { "no-restricted-imports": ["error", { patterns }] },
  }));
  const members = [
    `"$schema": "./node_modules/oxlint/configuration_schema.json"`,
    `"plugins": ${JSON.stringify(["typescript", "unicorn", "oxc", "import", "node", "promise"])}`,
    `"options": ${JSON.stringify({ typeAware: true, reportUnusedDisableDirectives: "error" })}`,
    `"ignorePatterns": ["**/dist/**"]`,
    `"categories": ${JSON.stringify({ correctness: "error", suspicious: "error", perf: "error" })}`,
    `"rules": {\n${lines(Object.entries(RULES).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`))}\n}`,
    `"overrides": [\n${lines([...layering, ...EXCEPTIONS].map((override) => JSON.stringify(override)))}\n]`,
  ];
  const header = "// Written by scripts/lint-config.ts, which holds the reasons: change it there.";
  return `${header}\n{\n${members.join(",\n")}\n}\n`;
}

function lines(members: readonly string[]): string {
  return members.map((member) => `  ${member}`).join(",\n");
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, "..", ".oxlintrc.jsonc"), lintConfig());
