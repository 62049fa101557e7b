import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";

const folder = mkdtempSync(join(tmpdir(), "cli-backup-"));
const data = join(folder, "source");
let relay: CliRelay;

before(async () => {
  relay = await openCliRelay({ data });
});
after(async () => {
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

describe("backup", () => {
  it("copies the database of a relay that goes on writing", async () => {
    const send = (body: string): Promise<unknown> => relay.client.send({ from: LULU, to: ZHIWEI, body });
    await send("备份之前");
    const restored = join(folder, "restored");
    mkdirSync(restored);
    const copy = join(restored, "relay.sqlite");
    const [{ code, stdout, stderr }] = await Promise.all([
      cliRun(["backup", copy, "--data", data]),
      ...Array.from({ length: 50 }, (_, index) => send(`其间 ${index}`)),
    ]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `copied the database to ${copy}\n`);
    assert.match(stderr, /holds keys and secrets: only you can read it/);
    assert.equal(statSync(copy).mode & 0o777, 0o600);
    assert.equal(existsSync(`${copy}.partial`), false);
    await using other = await openCliRelay({ data: restored });
    assert.match(await other.ok(["inbox", "--agent", ZHIWEI]), /备份之前/);
    await other.ok(["audit", "verify"]);
  });

  it("never replaces a file", async () => {
    const file = join(folder, "笔记");
    writeFileSync(file, "知微");
    const { code, stderr } = await cliRun(["backup", file, "--data", data]);
    assert.deepEqual([code, stderr], [1, `error: ${file} exists already; choose another name\n`]);
    assert.equal(readFileSync(file, "utf8"), "知微");
  });

  it("leaves nothing behind when it fails or is interrupted", async () => {
    const nowhere = join(folder, "nowhere", "copy");
    const unwritable = await cliRun(["backup", nowhere, "--data", data]);
    assert.equal(unwritable.code, 2);
    assert.match(unwritable.stderr, /^error: <file> .* cannot be written: ENOENT/);
    const copy = join(folder, "copy");
    const { code } = await cliRun(["backup", copy, "--data", data], { signal: AbortSignal.abort() });
    assert.equal(code, 130);
    assert.deepEqual([existsSync(copy), existsSync(`${copy}.partial`)], [false, false]);
  });

  it("names pg_dump for PostgreSQL", async () => {
    const argv = ["backup", join(folder, "copy"), "--database", "postgres://relay:geheim@127.0.0.1:1/relay"];
    const { code, stderr } = await cliRun(argv);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^error: backup is for SQLite; back PostgreSQL up with: pg_dump --format=custom .*\n$/,
    );
    assert.doesNotMatch(stderr, /geheim/);
  });
});
