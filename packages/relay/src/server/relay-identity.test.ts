import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openMemoryStore } from "../../testing/core-on-memory.ts";
import { refused } from "../../testing/refusal.ts";
import type { RelayStore } from "../core/ports/relay-store.ts";
import { isSignedBy, newKeyPair } from "../core/rules/ed25519.ts";
import { loadIdentity } from "./relay-identity.ts";

const POSIX = process.platform !== "win32";

interface StoreAndData extends AsyncDisposable {
  readonly store: RelayStore;
  readonly data: string;
  readonly file: string;
}

/** An empty store and a temporary data directory. */
async function storeAndData(): Promise<StoreAndData> {
  const data = mkdtempSync(join(tmpdir(), "relay-identity-数据-"));
  const store = await openMemoryStore();
  return {
    store,
    data,
    file: join(data, "identity.key"),
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

function keyFile({ file }: StoreAndData, text = newKeyPair().privateKey): void {
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
}

describe("the relay's identity", () => {
  it("is made once, and is the same for all relays on one store", async () => {
    await using at = await storeAndData();
    await using other = await storeAndData();
    const [first, second] = await Promise.all([
      loadIdentity(at.store.keys, at.data),
      loadIdentity(at.store.keys, other.data),
    ]);
    const third = await loadIdentity(at.store.keys, at.data);
    assert.deepEqual([second.publicKey, third.publicKey], [first.publicKey, first.publicKey]);
    assert.ok(isSignedBy(third.publicKey, "信", first.sign("信")));
  });

  it("of one store is not that of another", async () => {
    await using one = await storeAndData();
    await using other = await storeAndData();
    const [mine, theirs] = [
      await loadIdentity(one.store.keys, one.data),
      await loadIdentity(other.store.keys, other.data),
    ];
    assert.notEqual(mine.publicKey, theirs.publicKey);
  });

  it("is the one in the file of an earlier relay, which is left as it is and may be removed", async () => {
    await using at = await storeAndData();
    const { publicKey, privateKey } = newKeyPair();
    keyFile(at, privateKey);
    for (const _ of [1, 2]) assert.equal((await loadIdentity(at.store.keys, at.data)).publicKey, publicKey);
    assert.equal(readFileSync(at.file, "utf8"), `${privateKey}\n`);
    rmSync(at.file);
    assert.equal((await loadIdentity(at.store.keys, at.data)).publicKey, publicKey);
  });

  it("is refused when the file has another key than the store", async () => {
    await using at = await storeAndData();
    const { publicKey } = await loadIdentity(at.store.keys, at.data);
    keyFile(at);
    await refused(
      loadIdentity(at.store.keys, at.data),
      "unavailable",
      /identity\.key is not the key in the database; remove the file to use that one, or restore/,
    );
    rmSync(at.file);
    assert.equal((await loadIdentity(at.store.keys, at.data)).publicKey, publicKey);
  });

  it("is refused when others can read the file", { skip: !POSIX }, async () => {
    for (const mode of [0o640, 0o604, 0o660, 0o644]) {
      await using at = await storeAndData();
      keyFile(at);
      chmodSync(at.file, mode);
      await refused(
        loadIdentity(at.store.keys, at.data),
        "unavailable",
        /can be read by others \(mode 06\d\d\); .*chmod 600/,
      );
      chmodSync(at.file, 0o600);
      await loadIdentity(at.store.keys, at.data);
    }
  });

  it("is refused when the file is a symbolic link, also one to a good key", { skip: !POSIX }, async () => {
    await using at = await storeAndData();
    keyFile(at);
    renameSync(at.file, `${at.file}.real`);
    symlinkSync(`${at.file}.real`, at.file);
    await refused(loadIdentity(at.store.keys, at.data), "unavailable", /is a symbolic link/);
  });

  it("is refused when the file holds no key, and the file is left as it is", async () => {
    for (const text of ["", "你好", "QUJD"]) {
      await using at = await storeAndData();
      keyFile(at, text);
      await refused(
        loadIdentity(at.store.keys, at.data),
        "unavailable",
        /no Ed25519 private key; .*grant all/,
      );
      assert.equal(readFileSync(at.file, "utf8"), `${text}\n`);
    }
  });

  it("is refused when the file is a directory", async () => {
    await using at = await storeAndData();
    mkdirSync(at.file);
    await refused(loadIdentity(at.store.keys, at.data), "unavailable", /identity\.key/);
  });
});
