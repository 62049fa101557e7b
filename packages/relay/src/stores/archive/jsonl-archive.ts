import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { Archive } from "../../core/ports/archive.ts";
import type { Clock } from "../../core/ports/clock.ts";

type Stream = Parameters<Archive["append"]>[0];

interface OwnFile {
  readonly day: string;
  readonly path: string;
}

/**
 * One JSON object a line, on disk before the store removes the rows, in files by stream and day. It appends only to
 * files that it has made itself: several relays may share the directory, and a line that a crash has torn stays the
 * last of its file.
 */
export class JsonlArchive implements Archive {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #own = new Map<Stream, OwnFile>();
  #last: Promise<void> = Promise.resolve();

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** One after the other: a long append takes several writes. */
  append(stream: Stream, values: readonly object[]): Promise<void> {
    const appended = this.#last.then(() => this.#append(stream, values));
    this.#last = appended.catch(() => undefined);
    return appended;
  }

  async #append(stream: Stream, values: readonly object[]): Promise<void> {
    const day = new Date(this.#clock.nowMs()).toISOString().slice(0, 10);
    const own = this.#own.get(stream);
    // After a failure the end of the file is unknown; the next lines go to another one.
    this.#own.delete(stream);
    const { path, file } =
      (own?.day === day ? await reopened(own.path) : undefined) ?? (await this.#made(stream, day));
    await using _ = file;
    await file.appendFile(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
    await file.sync();
    this.#own.set(stream, { day, path });
  }

  /** A new file with the first free name: `events-2026-05-08.jsonl`, `events-2026-05-08.2.jsonl` and so on. */
  async #made(stream: Stream, day: string): Promise<OpenFile> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? `${stream}-${day}.jsonl` : `${stream}-${day}.${number}.jsonl`;
      const path = join(this.#directory, name);
      const file = await openUnless("EEXIST", path, constants.O_CREAT | constants.O_EXCL);
      if (file !== undefined) return { path, file };
    }
  }
}

interface OpenFile {
  readonly path: string;
  readonly file: FileHandle;
}

/** Undefined when it was moved away. */
async function reopened(path: string): Promise<OpenFile | undefined> {
  const file = await openUnless("ENOENT", path, 0);
  return file === undefined ? undefined : { path, file };
}

async function openUnless(code: string, path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_WRONLY | constants.O_APPEND | flags, 0o600);
  } catch (reason) {
    if ((reason as NodeJS.ErrnoException).code === code) return undefined;
    throw reason;
  }
}
