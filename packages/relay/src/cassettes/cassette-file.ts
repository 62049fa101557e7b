import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import type { Document } from "yaml";
import { parseCassette, readCassetteText } from "./cassette-parser.ts";
import { isSameExchange, type WrittenExchange } from "./exchange-recording.ts";

/** A cassette that grows. Readers see the old file or the new one, never a part. */
export class CassetteFile {
  readonly #path: string;
  readonly #agent: string;
  /** Writes run one after the other. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(path: string, agent: string) {
    this.#path = path;
    this.#agent = agent;
  }

  /** Refuses an existing file that is no cassette. */
  async check(): Promise<void> {
    await parseCassette(String(await this.#read()), this.#path);
  }

  /** Appends the exchange. With `unlessKnown`, only if the file has no equal one; false when it has. */
  append(exchange: WrittenExchange, options: { readonly unlessKnown: boolean }): Promise<boolean> {
    const written = this.#writing.then(() => this.#append(exchange, options.unlessKnown));
    this.#writing = written.catch(() => undefined);
    return written;
  }

  async #append(exchange: WrittenExchange, unlessKnown: boolean): Promise<boolean> {
    const { isSeq } = await import("yaml");
    const document = await this.#read();
    const listed: unknown = document.get("exchanges", true);
    if (isSeq(listed)) {
      if (unlessKnown && hasExchange(listed.toJSON(), exchange)) return false;
      // An empty list is written `[]`; exchanges in brackets are hard to read.
      if (listed.items.length === 0) listed.flow = false;
    }
    document.addIn(["exchanges"], document.createNode(exchange, { aliasDuplicateObjects: false }));
    const text = document.toString({ lineWidth: 0 });
    await parseCassette(text, this.#path);
    await replaceFile(this.#path, text);
    return true;
  }

  /** The file with its comments and order, or a new one. */
  async #read(): Promise<Document> {
    const { Document: NewDocument, parseDocument } = await import("yaml");
    const exists = await stat(this.#path).then(() => true, isMissing);
    if (exists) {
      const text = await readCassetteText(this.#path);
      await parseCassette(text, this.#path);
      return parseDocument(text);
    }
    const head = { version: 1, agent: this.#agent, mode: "loop", exchanges: [] };
    return new NewDocument(head);
  }
}

function hasExchange(listed: unknown, exchange: WrittenExchange): boolean {
  return (listed as readonly WrittenExchange[]).some(
    ({ match, reply }) => match !== undefined && isSameExchange({ match, reply }, exchange),
  );
}

/** Writes and syncs a file beside the target, then renames it. */
async function replaceFile(path: string, text: string): Promise<void> {
  const beside = join(dirname(path), `.${basename(path)}.${process.pid}.new`);
  try {
    const file = await open(beside, "w");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (cause) {
    await rm(beside, { force: true });
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RelayError("unavailable", `${path}: the cassette cannot be written: ${why}`, { cause });
  }
}

function isMissing(reason: unknown): false {
  if (reason instanceof Error && "code" in reason && reason.code === "ENOENT") return false;
  throw reason;
}
