import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";

const ROOT = join(import.meta.dirname, "..");
const GOLDEN = join(import.meta.dirname, "golden", "packed-files.txt");
const TIMEOUT_MS = 60_000;
const INSTALL_TIMEOUT_MS = 45_000;

/** What npm says when the registry cannot be reached, as opposed to when a package is wrong. */
const OFFLINE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED)\b/;

interface Packed {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

describe("the published packages", { timeout: TIMEOUT_MS }, () => {
  let folder: string;
  let packages: readonly Packed[];
  let offline: string | undefined;

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "a2a-relay-pack-")));
    packages = await buildAndPack(folder);
    offline = await install(folder, packages);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it("hold what the pinned list says and nothing else", async () => {
    const shape = packages.flatMap(shapeOf).toSorted().join("\n") + "\n";
    if (process.env["UPDATE_GOLDEN"] === "1") await writeFile(GOLDEN, shape);
    const hint = "If the change is meant, run the test with UPDATE_GOLDEN=1 and say so in CHANGELOG.md.";
    assert.equal(shape, await readFile(GOLDEN, "utf8"), hint);
  });

  it("hold a declaration for every module", () => {
    for (const { files } of packages) {
      const paths = files.map(({ path }) => path).filter((path) => path.startsWith("dist/"));
      for (const path of paths.filter((name) => name.endsWith(".js"))) {
        assert.ok(paths.includes(path.replace(/\.js$/, ".d.ts")), `${path} has no declaration`);
      }
    }
  });

  it("install into an empty project with a command line that runs", (t) => {
    if (offline !== undefined) return t.skip(offline);
    const { status, stdout, stderr } = spawnSync(commandLine(folder), ["--version"], {
      cwd: join(folder, "project"),
      encoding: "utf8",
      env: environment(),
    });
    assert.equal(status, 0, stderr);
    assert.equal(stdout.trim(), packages.find(({ name }) => name === "a2a-relay")?.version);
  });

  it("install a relay that finds its migrations and answers", async (t) => {
    if (offline !== undefined) return t.skip(offline);
    const relay = spawn(commandLine(folder), ["serve", "--data", join(folder, "data")], {
      cwd: join(folder, "project"),
      env: { ...environment(), HOST: "127.0.0.1", PORT: "0" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exit = once(relay, "exit");
    try {
      const response = await fetch(`${await addressOf(relay)}/ready`);
      assert.equal(response.status, 200);
    } finally {
      relay.kill("SIGTERM");
      await exit;
    }
  });

  it("say how to install the driver of PostgreSQL, which they do not bring", (t) => {
    if (offline !== undefined) return t.skip(offline);
    const { status, stderr } = spawnSync(
      commandLine(folder),
      ["serve", "--data", join(folder, "data"), "--database", "postgres://127.0.0.1:1/relay"],
      { cwd: join(folder, "project"), encoding: "utf8", env: environment() },
    );
    assert.equal(status, 1);
    assert.equal(stderr, "error: a PostgreSQL database needs the package pg; run: npm install pg\n");
  });

  for (const { where, compilerOptions } of consumers()) {
    it(`type-check for a program written for ${where}, their declarations included`, async (t) => {
      if (offline !== undefined) return t.skip(offline);
      const project = join(folder, "project", `tsconfig.${where}.json`);
      await writeFile(project, JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
      await writeFile(join(folder, "project", "consumer.ts"), CONSUMER);
      const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
      const { status, stdout } = spawnSync(process.execPath, [compiler, "--project", project], {
        encoding: "utf8",
      });
      assert.equal(status, 0, stdout);
    });
  }
});

const CONSUMER = `
import { RelayClient } from "@a2a-relay/client";
import { LIMITS, RelayError, type RelayErrorCode } from "@a2a-relay/protocol";

export const makeClient: typeof RelayClient = RelayClient;
export const subjectMax: number = LIMITS.subjectCharsMax;
export function codeOf(reason: unknown): RelayErrorCode {
  return RelayError.from(reason).code;
}
`;

/** A browser's program knows no Node, and a Node program may not know the DOM. */
function consumers() {
  const shared = { strict: true, skipLibCheck: false, noEmit: true, module: "nodenext", target: "es2023" };
  const typeRoots = [join(ROOT, "node_modules", "@types")];
  return [
    { where: "browsers", compilerOptions: { ...shared, lib: ["es2023", "dom", "dom.iterable"], types: [] } },
    { where: "node", compilerOptions: { ...shared, lib: ["es2023"], types: ["node"], typeRoots } },
  ];
}

/** Builds in a copy, so that a test run leaves no `dist` in the checkout. */
async function buildAndPack(folder: string): Promise<readonly Packed[]> {
  const copy = join(folder, "checkout");
  const skipped = /[/\\](node_modules|dist)$/;
  for (const name of ["packages", "scripts", "package.json", "tsconfig.json", "LICENSE"]) {
    await cp(join(ROOT, name), join(copy, name), { recursive: true, filter: (path) => !skipped.test(path) });
  }
  await linkModules(copy);
  const build = spawnSync(process.execPath, [join(copy, "scripts", "build.ts")], { encoding: "utf8" });
  assert.equal(build.status, 0, build.stdout + build.stderr);
  const pack = npm(copy, ["pack", "--json", "--workspaces", "--pack-destination", folder]);
  assert.equal(pack.status, 0, pack.stderr);
  return JSON.parse(pack.stdout) as Packed[];
}

/** The checkout's dependencies beside the copy, but the copy's own packages instead of the checkout's. */
async function linkModules(copy: string): Promise<void> {
  const modules = join(copy, "node_modules");
  await mkdir(join(modules, "@a2a-relay"), { recursive: true });
  const own = ["a2a-relay", "@a2a-relay", ".package-lock.json"];
  for (const name of await readdir(join(ROOT, "node_modules"))) {
    if (own.includes(name)) continue;
    await symlink(join(ROOT, "node_modules", name), join(modules, name), "junction");
  }
  for (const name of ["protocol", "client"]) {
    await symlink(join(copy, "packages", name), join(modules, "@a2a-relay", name), "junction");
  }
  // Versions that differ from those of the checkout's tools.
  const nested = join("packages", "relay", "node_modules");
  await symlink(join(ROOT, nested), join(copy, nested), "junction");
}

/** Installs the tarballs as a user would; answers why not when the registry cannot be reached. */
async function install(folder: string, packages: readonly Packed[]): Promise<string | undefined> {
  const project = join(folder, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), `{ "private": true, "type": "module" }`);
  await writeFile(join(project, "package-lock.json"), await pinnedDependencies());
  const tarballs = packages.map(({ filename }) => join(folder, filename));
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const bounded = ["--prefer-offline", "--fetch-retries=1", "--fetch-timeout=20000"];
  const { status, stderr } = npm(project, ["install", ...quiet, ...bounded, ...tarballs]);
  if (status !== 0 && OFFLINE.test(stderr)) return "the npm registry cannot be reached from here";
  assert.equal(status, 0, stderr);
  return undefined;
}

/** The checkout's lock file without its own packages, so that other people's releases cannot fail the test. */
async function pinnedDependencies(): Promise<string> {
  const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as {
    readonly lockfileVersion: number;
    readonly packages: Readonly<Record<string, { readonly link?: boolean }>>;
  };
  const installed = Object.entries(lock.packages).filter(
    ([path, { link }]) => path.startsWith("node_modules/") && link !== true,
  );
  const packages = { "": {}, ...Object.fromEntries(installed) };
  return JSON.stringify({ lockfileVersion: lock.lockfileVersion, requires: true, packages });
}

/**
 * One line for each folder and kind of module, one for each other file: a module more in a known folder is
 * everyday work, while a test, a source or a stray file in a package is what this pin is for.
 */
function shapeOf({ name, files }: Packed): readonly string[] {
  const lines = files.map(({ path }) => {
    const suffix = /\.(?:.+\.)?(?:js|d\.ts)$/.exec(path.slice(dirname(path).length + 1))?.[0];
    return `${name}: ${suffix !== undefined && path.startsWith("dist/") ? `${dirname(path)}/*${suffix}` : path}`;
  });
  return [...new Set(lines)];
}

function npm(cwd: string, words: readonly string[]) {
  const path = process.env["npm_execpath"];
  const [command, first] = path === undefined ? ["npm", []] : [process.execPath, [path]];
  const env = environment();
  return spawnSync(command, [...first, ...words], {
    cwd,
    env,
    encoding: "utf8",
    timeout: INSTALL_TIMEOUT_MS,
  });
}

/** This Node first on the PATH, and nothing of the npm that runs this test, which would act on the checkout. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_)|^npm_config_(local_prefix|workspace)/i.test(name),
  );
  const path = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
  return { ...Object.fromEntries(kept), PATH: path };
}

function commandLine(folder: string): string {
  const name = process.platform === "win32" ? "a2a-relay.cmd" : "a2a-relay";
  return join(folder, "project", "node_modules", ".bin", name);
}

/** Waits for the line that says where the relay listens. */
async function addressOf(relay: ChildProcess): Promise<string> {
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const listen = (chunk: Buffer): void => {
    said += chunk.toString();
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
    if (address !== undefined) resolve(address);
  };
  relay.stdout?.on("data", listen);
  relay.stderr?.on("data", listen);
  relay.on("exit", (code) => reject(new Error(`the relay ended with ${code}: ${said}`)));
  return promise;
}
