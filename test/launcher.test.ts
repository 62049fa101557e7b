import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, sep } from "node:path";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";

const LAUNCHER = join(import.meta.dirname, "..", "packages", "relay", "bin", "a2a-relay.js");
const TIMEOUT_MS = 30_000;

/** A stand-in for the CLI: says what runs it, and can end in every way a program ends. */
const MAIN = `
import { origin } from "@a2a-relay/protocol";
const version: string = process.version;
const words: readonly string[] = process.argv.slice(2);
if (words[0] === "exit") process.exit(Number(words[1]));
if (words[0] === "hang") {
  process.on("SIGTERM", () => process.stdout.write("told to stop", () => process.exit(7)));
  setInterval(() => {}, 1_000);
  process.stdout.write(process.pid + " is ready\\n");
} else {
  process.stdout.write(JSON.stringify({ version, words, origin, file: import.meta.url }));
}
`;

interface Said {
  readonly version: string;
  readonly words: readonly string[];
  readonly origin: string;
  readonly file: string;
}

describe("the launcher in a checkout", { timeout: TIMEOUT_MS }, () => {
  it("runs the sources, and those of the packages they import, without a build", async () => {
    await using checkout = await makeCheckout();
    const said = run(process.execPath, [checkout.launcher, "send", "--text", "知微你好"]);
    assert.deepEqual(said.words, ["send", "--text", "知微你好"]);
    assert.equal(said.origin, "source");
    assert.match(said.file, /src\/cli\/main\.ts$/);
  });

  it("prefers the sources to a build that lies around", async () => {
    await using checkout = await makeCheckout();
    await checkout.write("packages/relay/dist/cli/main.js", "process.stdout.write('built');");
    assert.match(run(process.execPath, [checkout.launcher]).file, /main\.ts$/);
  });

  it("passes on the exit code", async () => {
    await using checkout = await makeCheckout();
    assert.equal(spawnSync(process.execPath, [checkout.launcher, "exit", "3"]).status, 3);
  });
});

describe("the launcher under npm", { timeout: TIMEOUT_MS, skip: noSignals() }, () => {
  for (const [command, environment] of [
    ["npm exec", { npm_lifecycle_event: "npx" }],
    ["npm start", { npm_lifecycle_event: "start", npm_package_name: "a2a-relay-workspace" }],
  ] as const) {
    it(`stops when the shell of ${command} ends without passing a signal on`, async () => {
      await using checkout = await makeCheckout();
      const shell = await startUnderShell(checkout.launcher, environment);
      shell.kill("SIGTERM");
      assert.equal(await text(shell.stdout), "told to stop");
    });
  }

  it("goes on when the shell of a user's script ends, which may have meant it to", async () => {
    await using checkout = await makeCheckout();
    const shell = await startUnderShell(checkout.launcher, {
      npm_lifecycle_event: "up",
      npm_package_name: "mine",
    });
    const ended = once(shell, "exit");
    shell.kill("SIGKILL");
    await ended;
    // Long enough for the launcher to check its parent twice.
    const next = await Promise.race([once(shell.stdout, "data"), setTimeout(1_000, "silence")]);
    process.kill(shell.programPid, "SIGKILL");
    assert.equal(next, "silence");
  });
});

describe("the launcher in an installed package", { timeout: TIMEOUT_MS }, () => {
  it("runs the built files", async () => {
    await using checkout = await makeCheckout();
    await checkout.remove("packages/relay/src");
    await checkout.write("packages/relay/dist/cli/main.js", "process.stdout.write('built');");
    assert.equal(spawnSync(process.execPath, [checkout.launcher], { encoding: "utf8" }).stdout, "built");
  });
});

for (const old of oldNodes()) {
  describe(`the launcher on ${old.name}`, { timeout: TIMEOUT_MS, skip: old.skip }, () => {
    it("says in one sentence what is needed, which Node this is and where to get a newer one", async () => {
      await using checkout = await makeCheckout();
      const { status, stdout, stderr } = spawnSync(old.path, [...old.flags, checkout.launcher, "--version"], {
        encoding: "utf8",
      });
      assert.equal(status, 1);
      assert.equal(stdout, "");
      assert.match(stderr, /^a2a-relay needs Node 24 or newer; this is v\d+\.\d+\.\d+ \(.+node.*\)\. .+\n$/);
      assert.match(stderr, /https:\/\/nodejs\.org/);
    });

    it("hands over to the Node 24 that the checkout brought", async () => {
      await using checkout = await makeCheckout();
      await checkout.bringNode(platformPackage());
      const said = run(old.path, [...old.flags, checkout.launcher, "status"]);
      assert.equal(said.version, process.version);
      assert.deepEqual(said.words, ["status"]);
    });

    it(
      "finds that Node under npm's own name for it too",
      { skip: process.platform === "win32" },
      async () => {
        await using checkout = await makeCheckout();
        await checkout.bringNode(join(".bin", "node"));
        assert.equal(run(old.path, [...old.flags, checkout.launcher]).version, process.version);
      },
    );

    it("does not hand over to a Node that is too old as well", async () => {
      await using checkout = await makeCheckout();
      await checkout.write(join("node_modules", ".bin", "node"), "#!/bin/sh\necho v22.1.0\n", 0o755);
      const { status } = spawnSync(old.path, [...old.flags, checkout.launcher]);
      assert.equal(status, 1);
    });

    it("passes on the exit code of the Node it handed over to", async () => {
      await using checkout = await makeCheckout();
      await checkout.bringNode(platformPackage());
      const words = [...old.flags, checkout.launcher, "exit", "5"];
      assert.equal(spawnSync(old.path, words).status, 5);
    });

    it("forwards a signal, so that stopping it stops what it started", { skip: noSignals() }, async () => {
      await using checkout = await makeCheckout();
      await checkout.bringNode(platformPackage());
      const child = await startHanging(old.path, [...old.flags, checkout.launcher, "hang"]);
      child.kill("SIGTERM");
      assert.deepEqual(await once(child, "exit"), [7, null]);
    });

    it("ends by the signal that ended what it started", { skip: noSignals() }, async () => {
      await using checkout = await makeCheckout();
      await checkout.bringNode(platformPackage());
      const child = await startHanging(old.path, [...old.flags, checkout.launcher, "hang"]);
      child.kill("SIGINT");
      assert.deepEqual(await once(child, "exit"), [null, "SIGINT"]);
    });
  });
}

interface OldNode {
  readonly name: string;
  readonly path: string;
  readonly flags: readonly string[];
  readonly skip: string | false;
}

/** The machine's own Node where that is an old one, and always this one, disguised. */
function oldNodes(): readonly OldNode[] {
  const claim = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } })`;
  const disguise = {
    name: "a Node that says it is 20",
    path: process.execPath,
    flags: ["--import", `data:text/javascript,${encodeURIComponent(claim)}`],
    skip: false,
  } as const;
  const path = machineNode();
  const machine = {
    name: "the machine's own old Node",
    path: path ?? "",
    flags: [],
    skip: path === undefined ? "this machine has no Node older than 24 on its PATH" : false,
  } as const;
  return [disguise, machine];
}

function machineNode(): string | undefined {
  const name = process.platform === "win32" ? "node.exe" : "node";
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    if (folder.includes(`node_modules${sep}.bin`)) continue;
    const { stdout } = spawnSync(join(folder, name), ["--version"], { encoding: "utf8" });
    const major = Number.parseInt(stdout?.slice(1) ?? "", 10);
    if (major >= 16 && major < 24) return join(folder, name);
  }
  return undefined;
}

function platformPackage(): string {
  const windows = process.platform === "win32";
  const folder = `node-${windows ? "win" : process.platform}-${process.arch}`;
  return join(folder, "bin", windows ? "node.exe" : "node");
}

function noSignals(): string | false {
  return process.platform === "win32" ? "Windows has no signals to forward" : false;
}

/** The launcher in a tree of the checkout's shape, with stand-ins for everything around it. */
async function makeCheckout() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "a2a-relay-launcher-")));
  const write = async (path: string, content: string, mode = 0o644): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content, { mode });
  };
  const launcher = join(root, "packages", "relay", "bin", "a2a-relay.js");
  await mkdir(dirname(launcher), { recursive: true });
  await cp(LAUNCHER, launcher);
  await write("packages/relay/package.json", `{ "name": "a2a-relay", "type": "module" }`);
  await write("packages/relay/src/cli/main.ts", MAIN);
  await write(
    "packages/protocol/package.json",
    JSON.stringify({
      name: "@a2a-relay/protocol",
      type: "module",
      exports: { ".": { source: "./src/index.ts", default: "./dist/index.js" } },
    }),
  );
  await write("packages/protocol/src/index.ts", `export const origin: string = "source";\n`);
  await mkdir(join(root, "node_modules", "@a2a-relay"), { recursive: true });
  await symlink(
    join(root, "packages", "protocol"),
    join(root, "node_modules", "@a2a-relay", "protocol"),
    "junction",
  );
  return {
    launcher,
    write,
    remove: (path: string) => rm(join(root, path), { recursive: true }),
    /** Puts a Node 24 that is not disguised at this path of `node_modules`. */
    async bringNode(where: string): Promise<void> {
      const path = join(root, "node_modules", where);
      await mkdir(dirname(path), { recursive: true });
      await (process.platform === "win32" ? cp(process.execPath, path) : symlink(process.execPath, path));
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

function run(path: string, words: readonly string[]): Said {
  const { status, stdout, stderr } = spawnSync(path, words, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as Said;
}

/** The launcher as npm starts it, below a shell that waits for it. */
async function startUnderShell(launcher: string, environment: NodeJS.ProcessEnv) {
  const shell = spawn("sh", ["-c", `"${process.execPath}" "${launcher}" hang; true`], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [ready] = (await once(shell.stdout, "data")) as [Buffer];
  return Object.assign(shell, { programPid: Number.parseInt(ready.toString(), 10) });
}

async function startHanging(path: string, words: readonly string[]): Promise<ChildProcess> {
  // No terminal among its streams, where the launcher would leave signals to the terminal.
  const child = spawn(path, words, { stdio: ["ignore", "pipe", "ignore"] });
  await once(child.stdout, "data");
  return child;
}
