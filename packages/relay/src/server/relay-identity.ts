import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import { newKeyPair, type SigningKey, signingKey } from "../core/rules/ed25519.ts";

const FILE = "identity.key";
const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
/** Windows has neither modes nor this flag; there the directory's access list protects the file. */
const HAS_MODES = process.platform !== "win32";
const NO_FOLLOW = HAS_MODES ? constants.O_NOFOLLOW : 0;

/**
 * The relay's signing key, made at the first start. Call it only while the data directory is locked: two relays that
 * both make a key would reject each other's signatures.
 */
export function loadIdentity(dataDirectory: string): SigningKey {
  const path = join(dataDirectory, FILE);
  return readIdentity(path) ?? makeIdentity(dataDirectory, path);
}

/** Undefined when there is none yet. */
function readIdentity(path: string): SigningKey | undefined {
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
    return keyIn(path, readFileSync(file, "utf8"));
  } finally {
    closeSync(file);
  }
}

function keyIn(path: string, text: string): SigningKey {
  try {
    return signingKey(text.trim());
  } catch (cause) {
    const how = "bring it back from a copy, or remove it and grant all capabilities anew";
    throw unusable(path, `is no Ed25519 private key; ${how}`, cause);
  }
}

/** Writes a draft and renames it, so that a crash leaves either no key or a whole one. */
function makeIdentity(dataDirectory: string, path: string): SigningKey {
  const draft = `${path}.new`;
  const { privateKey } = newKeyPair();
  try {
    rmSync(draft, { force: true });
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;
    withFile(openSync(draft, flags, OWNER_ONLY), (file) => {
      writeSync(file, `${privateKey}\n`);
      fsyncSync(file);
    });
    renameSync(draft, path);
    if (HAS_MODES) withFile(openSync(dataDirectory, constants.O_RDONLY), fsyncSync);
  } catch (cause) {
    throw unusable(path, `cannot be made: ${(cause as Error).message}`, cause);
  }
  return signingKey(privateKey);
}

function withFile(file: number, act: (file: number) => void): void {
  try {
    act(file);
  } finally {
    closeSync(file);
  }
}

function unusable(path: string, why: string, cause?: unknown): RelayError {
  return new RelayError("unavailable", `the relay's key ${path} ${why}`, { cause });
}
