import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import type { KeyStore } from "../core/ports/access.ts";
import { newKeyPair, type SigningKey, signingKey } from "../core/rules/ed25519.ts";

/** Where earlier relays kept the key, and where an operator may put one before the first start. */
const FILE = "identity.key";
const OTHERS = 0o077;
/** Windows has neither modes nor this flag; there the directory's access list protects the file. */
const HAS_MODES = process.platform !== "win32";
const NO_FOLLOW = HAS_MODES ? constants.O_NOFOLLOW : 0;

/**
 * The signing key that all relays on one store share. The first relay puts it there: the key of its file, if it has
 * one, or a new one.
 */
export async function loadIdentity(keys: KeyStore, dataDirectory: string): Promise<SigningKey> {
  const path = join(dataDirectory, FILE);
  const given = readIdentity(path);
  const identity = signingKey(await keys.identity(given?.privateKey ?? newKeyPair().privateKey));
  if (given !== undefined && given.publicKey !== identity.publicKey) {
    const how = "remove the file to use that one, or restore the database that the file belongs to";
    throw unusable(path, `is not the key in the database; ${how}`);
  }
  return identity;
}

/** Undefined when there is no file. */
function readIdentity(path: string): { readonly publicKey: string; readonly privateKey: string } | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | NO_FOLLOW);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw unusable(path, "is a symbolic link; put the file itself there", cause);
    throw unusable(path, `cannot be read: ${message}`, cause);
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw unusable(path, "is not a file; remove it");
    const mode = stats.mode & 0o777;
    if (HAS_MODES && (mode & OTHERS) !== 0) {
      const found = mode.toString(8).padStart(4, "0");
      throw unusable(
        path,
        `can be read by others (mode ${found}); if it was not copied, run: chmod 600 ${path}`,
      );
    }
    const privateKey = readFileSync(file, "utf8").trim();
    return { privateKey, publicKey: publicKeyIn(path, privateKey) };
  } finally {
    closeSync(file);
  }
}

function publicKeyIn(path: string, privateKey: string): string {
  try {
    return signingKey(privateKey).publicKey;
  } catch (cause) {
    const how = "bring it back from a copy, or remove it and grant all capabilities anew";
    throw unusable(path, `is no Ed25519 private key; ${how}`, cause);
  }
}

function unusable(path: string, why: string, cause?: unknown): RelayError {
  return new RelayError("unavailable", `the relay's key ${path} ${why}`, { cause });
}
