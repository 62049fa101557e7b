import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type ChildRun, runChildRelay, startChildRelay } from "../support/child-relay.ts";
import { assertKept, createMessage, registerBoth } from "./messages.ts";

const UNPRIVILEGED = { uid: 65_534, gid: 65_534 } as const;
/** Root may write everywhere, so the test gives up its rights. */
const unprivileged = process.getuid?.() === 0 ? { user: UNPRIVILEGED } : {};
const noPermissions = process.platform === "win32" ? "Windows has no such permissions" : false;

describe("a relay that cannot use its data directory", { timeout: 60_000 }, () => {
  it("says so when it may not write there", { skip: noPermissions }, async () => {
    await using folder = await makeFolder(0o555);
    const run = await runChildRelay({ dataDirectory: folder.path, ...unprivileged });
    assertSentence(run, folder.path, /permission/);
  });

  it("says so when it may not create it", { skip: noPermissions }, async () => {
    await using folder = await makeFolder(0o555);
    const dataDirectory = join(folder.path, "data");
    const run = await runChildRelay({ dataDirectory, ...unprivileged });
    assertSentence(run, dataDirectory, /permission|EACCES/);
  });

  it("says so when the database belongs to another user", { skip: noPermissions }, async () => {
    await using folder = await makeFolder(0o755);
    await stopCleanly(folder.path);
    if (!("user" in unprivileged)) await chmod(join(folder.path, "relay.sqlite"), 0o400);
    const run = await runChildRelay({ dataDirectory: folder.path, ...unprivileged });
    assertSentence(run, folder.path, /permission|read-only/);
  });

  it("says so when it is a file", async () => {
    await using folder = await makeFolder(0o755);
    const dataDirectory = join(folder.path, "file");
    await writeFile(dataDirectory, "not a directory");
    assertSentence(await runChildRelay({ dataDirectory }), dataDirectory, /file|directory/);
  });

  it("says so when the database is none, and leaves the file as it was", async () => {
    await using folder = await makeFolder(0o755);
    const path = join(folder.path, "relay.sqlite");
    const text = "my notes ".repeat(1_000);
    await writeFile(path, text);
    assertSentence(await runChildRelay({ dataDirectory: folder.path }), path, /not a SQLite database/);
    assert.equal(await readFile(path, "utf8"), text);
  });

  it("says so when the database was overwritten with garbage", async () => {
    await using folder = await makeFolder(0o755);
    await stopCleanly(folder.path);
    const path = join(folder.path, "relay.sqlite");
    await writeFile(path, Buffer.alloc(50_000, 0xa5));
    assertSentence(
      await runChildRelay({ dataDirectory: folder.path }),
      path,
      /not a SQLite database|damaged/,
    );
  });
});

describe("a second relay on the same data directory", { timeout: 60_000 }, () => {
  it("is refused with a sentence, and the first goes on", async () => {
    await using first = await startChildRelay();
    await registerBoth(first.url);
    const before = await createMessage(first.url, "before");
    const run = await runChildRelay({ dataDirectory: first.dataDirectory });
    assertSentence(run, first.dataDirectory, /already in use by another relay/);
    const after = await createMessage(first.url, "after");
    await assertKept(first.url, [before, after]);
  });

  it("starts at once when the first was killed", async () => {
    await using first = await startChildRelay();
    await registerBoth(first.url);
    const message = await createMessage(first.url, "before the kill");
    await first.kill("SIGKILL");
    await using second = await startChildRelay({ dataDirectory: first.dataDirectory });
    await assertKept(second.url, [message]);
  });
});

describe("a relay that cannot listen", { timeout: 60_000 }, () => {
  it("says which port is in use", async () => {
    await using other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const address = other.address();
    const port = typeof address === "object" && address !== null ? String(address.port) : "";
    const run = await runChildRelay({ args: ["--port", port] });
    assertSentence(run, port, /already in use/);
  });

  it("refuses an address that others can reach unless a key is set", async () => {
    const run = await runChildRelay({ env: { HOST: "0.0.0.0" } });
    assertSentence(run, "0.0.0.0", /A2A_RELAY_API_KEY/);
  });
});

/** One sentence for people that names what it is about; no stack, and no sign of success. */
function assertSentence(run: ChildRun, about: string, why: RegExp): void {
  assert.equal(run.code, 1, `${run.signal ?? run.code}: ${run.stderr}`);
  assert.equal(run.stdout, "");
  assert.match(run.stderr, /^error: [^\n]+\n$/);
  assert.ok(run.stderr.includes(about), run.stderr);
  assert.match(run.stderr, why);
  assert.doesNotMatch(run.stderr, /\bat .+:\d+:\d+|\.ts\b/);
}

async function makeFolder(mode: number): Promise<AsyncDisposable & { readonly path: string }> {
  const root = await mkdtemp(join(tmpdir(), "a2a-relay-faults-"));
  await chmod(root, 0o755);
  const path = join(root, "data");
  await mkdir(path);
  await chmod(path, mode);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await chmod(path, 0o755);
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function stopCleanly(dataDirectory: string): Promise<void> {
  await using relay = await startChildRelay({ dataDirectory });
  await registerBoth(relay.url);
  await relay.kill("SIGTERM");
}
