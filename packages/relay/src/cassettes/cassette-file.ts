import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { RelayError } from "@a2a-relay/protocol";
import type { Document } from "yaml";
import { parseCassette, readCassetteText } from "./cassette-parser.ts";
import { isSameExchange, type WrittenExchange } from "./exchange-recording.ts";

/** A cassette that grows. Readers see the file as it was or as it is, never something between. */
export class CassetteFile {
  readonly #path: string;
  readonly #agent: string;
  /** One write after another, so that none is lost to the next. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(path: string, agent: string) {
    this.#path = path;
    this.#agent = agent;
  }

  /** Refuses a file that is there and is no cassette, before anything is recorded in vain. */
  async check(): Promise<void> {
    await parseCassette(String(await this.#read()), this.#path);
  }

  /** Adds the exchange behind all others. With `unlessKnown`, only if none says the same. False when one did. */
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
      // An empty list is written `[]`, and what stands in brackets is hard to read.
      if (listed.items.length === 0) listed.flow = false;
    }
    document.addIn(["exchanges"], document.createNode(exchange, { aliasDuplicateObjects: false }));
    const text = document.toString({ lineWidth: 0 });
    await parseCassette(text, this.#path);
    await replaceFile(this.#path, text);
    return true;
  }

  /** The file with its comments and its order, or a new one. */
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

/** The whole of it beside the file, onto the disk, then in its place. */
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
