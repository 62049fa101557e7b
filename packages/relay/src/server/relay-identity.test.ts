import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { refused } from "../../testing/refusal.ts";
import { isSignedBy } from "../core/rules/ed25519.ts";
import { loadIdentity } from "./relay-identity.ts";

const POSIX = process.platform !== "win32";

/** A temporary data directory. */
function directory(): Disposable & { readonly data: string; readonly file: string } {
  const data = mkdtempSync(join(tmpdir(), "relay-identity-数据-"));
  return {
    data,
    file: join(data, "identity.key"),
    [Symbol.dispose]: () => rmSync(data, { recursive: true, force: true }),
  };
}

describe("the relay's identity", () => {
  it("is made once, for its owner only, and is the same at every start", () => {
    using at = directory();
    const first = loadIdentity(at.data);
    if (POSIX) assert.equal(statSync(at.file).mode & 0o777, 0o600);
    const kept = readFileSync(at.file, "utf8");
    const second = loadIdentity(at.data);
    assert.equal(second.publicKey, first.publicKey);
    assert.equal(readFileSync(at.file, "utf8"), kept);
    assert.ok(isSignedBy(second.publicKey, "信", first.sign("信")));
  });

  it("is not made of what a crash left behind", () => {
    using at = directory();
    writeFileSync(`${at.file}.new`, "half");
    loadIdentity(at.data);
    assert.equal(loadIdentity(at.data).publicKey, loadIdentity(at.data).publicKey);
  });

  it("of one directory is not that of another", () => {
    using one = directory();
    using other = directory();
    assert.notEqual(loadIdentity(one.data).publicKey, loadIdentity(other.data).publicKey);
  });

  it("is refused when others can read it", { skip: !POSIX }, async () => {
    for (const mode of [0o640, 0o604, 0o660, 0o644]) {
      using at = directory();
      loadIdentity(at.data);
      chmodSync(at.file, mode);
      await refused(
        () => loadIdentity(at.data),
        "unavailable",
        /can be read by others \(mode 06\d\d\); .*chmod 600/,
      );
      chmodSync(at.file, 0o600);
      loadIdentity(at.data);
    }
  });

  it("is refused when it is a symbolic link, also one to a good key", { skip: !POSIX }, async () => {
    using at = directory();
    loadIdentity(at.data);
    renameSync(at.file, `${at.file}.real`);
    symlinkSync(`${at.file}.real`, at.file);
    await refused(() => loadIdentity(at.data), "unavailable", /is a symbolic link/);
  });

  it("is refused when it is no key, and left as it is", async () => {
    for (const text of ["", "你好", "QUJD"]) {
      using at = directory();
      writeFileSync(at.file, text, { mode: 0o600 });
      await refused(() => loadIdentity(at.data), "unavailable", /no Ed25519 private key; .*grant all/);
      assert.equal(readFileSync(at.file, "utf8"), text);
    }
  });

  it("is refused when it is a directory or cannot be made", async () => {
    using at = directory();
    mkdirSync(at.file);
    await refused(() => loadIdentity(at.data), "unavailable", /identity\.key/);
    await refused(() => loadIdentity(join(at.data, "not-there")), "unavailable", /cannot be made/);
  });
});
