import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { formatInstant, RelayError } from "@a2a-relay/protocol";
import type { Anchor, Anchors } from "../../core/ports/archive.ts";
import { textLines } from "./text-lines.ts";

export interface AnchorFileLimits {
  /** The file is rewritten when it grows beyond this: about a week of anchors. */
  readonly fileBytesMax: number;
  /** How much a rewrite keeps: the newest anchors, and always the last one of every tenant. */
  readonly keptBytes: number;
}

const MIB = 1024 * 1024;
const LIMITS: AnchorFileLimits = { fileBytesMax: 8 * MIB, keptBytes: 4 * MIB };

const FILE = "anchors.jsonl";
const HASH = /^[0-9a-f]{64}$/;
/** Closes a line that a crash has torn. Nothing is cut off, because write-once storage does not allow it. */
const TORN = " (torn)";

interface AnchorLine {
  readonly anchor: Anchor;
  readonly text: string;
  /** Of its first byte. */
  readonly offset: number;
}

/**
 * Anchors as lines of JSON in an append-only file, in a directory that may be on another disk or on write-once
 * storage. A long file is rewritten, unless the storage forbids it.
 */
export class AnchorFile implements Anchors {
  readonly areAll: boolean;
  readonly #directory: string;
  readonly #path: string;
  readonly #limits: AnchorFileLimits;
  #rewriteAtBytes: number;
  /** The newest anchors, and the state of the file from which they were read. */
  #latest = new Map<string, Anchor>();
  #readState: string | undefined;

  constructor(directory: string, options: Partial<AnchorFileLimits> & { readonly areAll?: boolean } = {}) {
    const limits = { ...LIMITS, ...options };
    this.areAll = options.areAll ?? true;
    this.#directory = directory;
    this.#path = join(directory, FILE);
    this.#limits = limits;
    this.#rewriteAtBytes = limits.fileBytesMax;
  }

  async latest(): Promise<ReadonlyMap<string, Anchor>> {
    return this.#orUnavailable("read", async () => {
      await using file = await openIfPresent(this.#path);
      const state = file === undefined ? "missing" : await stateOf(file);
      if (state === this.#readState) return this.#latest;
      const latest = new Map<string, Anchor>();
      if (file !== undefined) {
        for await (const { anchor } of readAnchors(file)) latest.set(anchor.tenant, anchor);
      }
      this.#latest = latest;
      this.#readState = state;
      return latest;
    });
  }

  async *history(tenant: string): AsyncGenerator<Anchor, void, void> {
    await using file = await this.#orUnavailable("read", () => openIfPresent(this.#path));
    if (file === undefined) return;
    const lines = readAnchors(file);
    for (;;) {
      const { value, done } = await this.#orUnavailable("read", () => lines.next());
      if (done === true || value === undefined) return;
      if (value.anchor.tenant === tenant) yield value.anchor;
    }
  }

  async keep(anchors: readonly Anchor[]): Promise<void> {
    await this.#orUnavailable("written", async () => {
      const latest = new Map(await this.latest());
      await using file = await open(this.#path, "a+", 0o600);
      const { size } = await file.stat();
      const start = (await endsInLine(file, size)) ? "" : `${TORN}\n`;
      await file.appendFile(`${start}${anchors.map(lineOf).join("\n")}\n`);
      await file.sync();
      if (size === 0) await syncDirectory(this.#directory);
      for (const anchor of anchors) latest.set(anchor.tenant, anchor);
      this.#latest = latest;
      this.#readState = await stateOf(file);
      await this.#shorten(file);
    });
  }

  /** Append-only storage refuses this, and the file keeps growing; the anchors are written already. */
  async #shorten(file: FileHandle): Promise<void> {
    const { size } = await file.stat();
    if (size <= this.#rewriteAtBytes) return;
    this.#rewriteAtBytes = size + this.#limits.fileBytesMax;
    const draft = `${this.#path}.new`;
    try {
      await using shorter = await open(draft, "w", 0o600);
      await shorter.appendFile(await this.#newest(file, size));
      await shorter.sync();
      await rename(draft, this.#path);
      await syncDirectory(this.#directory);
      this.#readState = await stateOf(shorter);
      this.#rewriteAtBytes = this.#limits.fileBytesMax;
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }

  async #newest(file: FileHandle, size: number): Promise<string> {
    const recent: string[] = [];
    const older = new Map<string, string>();
    const tenants = new Set<string>();
    for await (const { anchor, text, offset } of readAnchors(file)) {
      if (offset < size - this.#limits.keptBytes) {
        older.set(anchor.tenant, text);
      } else {
        recent.push(text);
        tenants.add(anchor.tenant);
      }
    }
    const rest = [...older].filter(([tenant]) => !tenants.has(tenant)).map(([, text]) => text);
    return [...rest, ...recent, ""].join("\n");
  }

  async #orUnavailable<Answer>(verb: "read" | "written", act: () => Promise<Answer>): Promise<Answer> {
    try {
      return await act();
    } catch (cause) {
      if (cause instanceof RelayError) throw cause;
      const { code } = cause as NodeJS.ErrnoException;
      const sentence = `the anchors outside the log cannot be ${verb} (${code ?? "unknown error"})`;
      throw new RelayError("unavailable", `${sentence}; check ${FILE} in the anchor directory`, { cause });
    }
  }
}

/** Up to the present end. Ignores a last line without a line break: a crash has torn it. */
async function* readAnchors(file: FileHandle): AsyncGenerator<AnchorLine, void, void> {
  let number = 0;
  let offset = 0;
  for await (const { text, ended } of textLines(bytesOf(file))) {
    if (!ended) return;
    number += 1;
    const anchor = anchorFrom(text);
    if (anchor !== undefined) yield { anchor, text, offset };
    else if (!text.endsWith(TORN)) throw spoiltLine(number);
    offset += Buffer.byteLength(text) + 1;
  }
}

async function* bytesOf(file: FileHandle): AsyncGenerator<Uint8Array, void, void> {
  const { size } = await file.stat();
  const buffer = Buffer.alloc(64 * 1024);
  for (let position = 0; position < size;) {
    const length = Math.min(buffer.length, size - position);
    const { bytesRead } = await file.read(buffer, 0, length, position);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

function spoiltLine(number: number): RelayError {
  const sentence = `line ${number} of ${FILE} is not an anchor: the anchors outside the log were damaged or edited`;
  return new RelayError("unavailable", `${sentence}; compare them with a copy, then move the file away`);
}

function lineOf({ tenant, seq, hash, atMs }: Anchor): string {
  return JSON.stringify({ tenant, seq, hash, at: formatInstant(atMs) });
}

function anchorFrom(text: string): Anchor | undefined {
  const { tenant, seq, hash, at } = objectFrom(text);
  if (typeof tenant !== "string" || typeof hash !== "string" || !HASH.test(hash)) return undefined;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1) return undefined;
  const atMs = typeof at === "string" ? Date.parse(at) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : { tenant, seq, hash, atMs };
}

function objectFrom(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

async function openIfPresent(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (reason) {
    if ((reason as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw reason;
  }
}

/** Differs whenever another program wrote to the file or replaced it. */
async function stateOf(file: FileHandle): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await file.stat({ bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

async function endsInLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() === "\n";
}

/** A new name is on disk only once its directory is. Windows has no such call and needs none. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  await using directory = await open(path, "r");
  await directory.sync();
}
