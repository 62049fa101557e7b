import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";
import { linesIn, recordsIn, sealed } from "../../../../testing/transfer-files.ts";

const folder = mkdtempSync(join(tmpdir(), "cli-export-"));
const data = join(folder, "source");
let relay: CliRelay;

before(async () => {
  relay = await openCliRelay({ data });
  await relay.ok(["send", "--from", LULU, "--to", ZHIWEI, "--body", "知微你好"]);
});
after(async () => {
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

let lastName = 0;
function newPath(): string {
  lastName += 1;
  return join(folder, String(lastName));
}

async function exported(): Promise<string> {
  const file = newPath();
  const { code, stderr } = await cliRun(["export", "--to", file, "--data", data]);
  assert.equal(code, 0, stderr);
  return file;
}

describe("export", () => {
  it("writes the data of a running relay to a file that only its owner can read", async () => {
    const file = newPath();
    const { code, stdout, stderr } = await cliRun(["export", "--to", file, "--data", data]);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^exported \d+ lines to .*\n[^]* {2}message +1\n[^]* {2}head +default \d+:[0-9a-f]{64}\n$/,
    );
    assert.match(stderr, /holds keys and secrets: only you can read it/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it("says in JSON what it has written", async () => {
    const file = newPath();
    const { stdout } = await cliRun(["export", "--to", file, "--data", data, "--json"]);
    const answer = JSON.parse(stdout) as Record<string, unknown>;
    assert.deepEqual(Object.keys(answer), ["file", "kept_lines", "lines", "sha256", "records", "chains"]);
    assert.equal(answer["lines"], linesIn(file).length - 1);
  });

  it("continues a file, says so, and leaves a complete one alone", async () => {
    const file = await exported();
    const whole = readFileSync(file);
    writeFileSync(file, whole.subarray(0, whole.length - 300));
    const again = await cliRun(["export", "--to", file, "--data", data]);
    assert.deepEqual([again.code, readFileSync(file)], [0, whole]);
    assert.match(again.stderr, /^continued after line \d+\n/);
    const third = await cliRun(["export", "--to", file, "--data", data]);
    assert.equal(third.code, 1);
    assert.match(third.stderr, /^error: .* is a complete export already; choose another name\n$/);
  });

  it("says that the data has changed where a file cannot be continued", async () => {
    const file = await exported();
    const lines = linesIn(file).slice(0, -2);
    writeFileSync(file, `${lines.map((line) => line.replace("知微", "微知")).join("\n")}\n`);
    const { stderr } = await cliRun(["export", "--to", file, "--data", data]);
    assert.match(stderr, /^the data has changed since .* was begun: written anew from line \d+\n/);
    assert.deepEqual(recordsIn(file), recordsIn(await exported()));
  });

  it("ends with 130 when it is interrupted, and says how to go on", async () => {
    const file = newPath();
    const { code, stderr } = await cliRun(["export", "--to", file, "--data", data], {
      signal: AbortSignal.abort(),
    });
    assert.deepEqual([code, stderr], [130, `${file} is not complete; the same command continues it\n`]);
    assert.equal((await cliRun(["export", "--to", file, "--data", data])).code, 0);
  });

  it("names what is wrong with the file or the data", async () => {
    const nowhere = join(folder, "nowhere", "file");
    const unwritable = await cliRun(["export", "--to", nowhere, "--data", data]);
    assert.equal(unwritable.code, 2);
    assert.match(unwritable.stderr, /^error: --to .* cannot be written: ENOENT/);
    const file = newPath();
    const missing = await cliRun(["export", "--to", file, "--data", join(folder, "none")]);
    assert.deepEqual([missing.code, existsSync(file)], [4, false]);
    assert.match(missing.stderr, /^error: there is no database .*relay\.sqlite; choose another with --data/);
    assert.equal(existsSync(join(folder, "none")), false);
    const device = await cliRun(["export", "--to", "/dev/null", "--data", data]);
    assert.equal(device.code, 1);
    assert.match(device.stderr, /^error: \/dev\/null is not a file; - writes to stdout\n$/);
  });
});

describe("import", () => {
  it("reads a file into a new data directory, on which a relay has the same data", async () => {
    const target = newPath();
    const file = await exported();
    const { code, stdout, stderr } = await cliRun(["import", "--from", file, "--data", target]);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^imported \d+ lines from .*\n[^]* {2}verified {2}default: \d+ events, 1 messages\n$/,
    );
    await using moved = await openCliRelay({ data: target });
    assert.match(await moved.ok(["inbox", "--agent", ZHIWEI]), /知微你好/);
    await moved.ok(["audit", "verify"]);
  });

  it("takes what an export writes to stdout from stdin", async () => {
    const { code, stdout, stderr } = await cliRun(["export", "--to", "-", "--data", data]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^exported \d+ lines to stdout\n$/);
    const target = newPath();
    const argv = ["import", "--from", "-", "--data", target, "--json"];
    const answer = await cliRun(argv, { stdin: stdout });
    assert.equal(answer.code, 0, answer.stderr);
    const { ok, lines } = JSON.parse(answer.stdout) as { readonly ok: boolean; readonly lines: number };
    assert.deepEqual([ok, lines], [true, stdout.split("\n").length - 2]);
  });

  it("ends with 1 for a file that was changed, and no relay starts on what it leaves", async () => {
    const target = newPath();
    const file = newPath();
    const changed = linesIn(await exported()).slice(0, -1);
    writeFileSync(file, sealed(changed.map((line) => line.replace("知微你好", "知微再见"))));
    const { code, stderr } = await cliRun(["import", "--from", file, "--data", target]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^error: tenant default: message \S+ is not the one that event \d+ accepted; .* remove it/,
    );
    const served = await cliRun(["serve", "--port", "0", "--data", target, "--log-level", "silent"]);
    assert.equal(served.code, 1);
    assert.match(served.stderr, /^error: .* holds a part of an import; import the same file again/);
  });

  it("leaves the data of a running relay alone", async () => {
    const { code, stderr } = await cliRun(["import", "--from", await exported(), "--data", data]);
    assert.equal(code, 4);
    assert.match(stderr, /is already in use by another relay/);
  });

  it("ends with 2 for a file that cannot be read, with 130 when it is interrupted", async () => {
    const missing = await cliRun(["import", "--from", join(folder, "none"), "--data", newPath()]);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /^error: --from .* cannot be read: ENOENT/);
    const argv = ["import", "--from", await exported(), "--data", newPath()];
    const { code, stderr } = await cliRun(argv, { signal: AbortSignal.abort() });
    assert.deepEqual([code, stderr], [130, "the import is not complete; the same command continues it\n"]);
    assert.equal((await cliRun(argv)).code, 0);
  });
});
