import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { Archive } from "../../core/ports/archive.ts";
import type { Clock } from "../../core/ports/clock.ts";

/** One file for each stream and day, one JSON object a line, on disk before the store removes the rows. */
export class JsonlArchive implements Archive {
  readonly #directory: string;
  readonly #clock: Clock;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  async append(stream: "messages" | "events", values: readonly object[]): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const day = new Date(this.#clock.nowMs()).toISOString().slice(0, 10);
    await using file = await open(join(this.#directory, `${stream}-${day}.jsonl`), "a+", 0o600);
    // After a line that a crash has torn, the next one starts on a new line.
    const start = (await endsInLine(file)) ? "" : "\n";
    const lines = values.map((value) => `${JSON.stringify(value)}\n`);
    await file.appendFile(start + lines.join(""));
    await file.sync();
  }
}

async function endsInLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() === "\n";
}
