import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import type { Archive } from "../../core/environment/archive.ts";
import type { Clock } from "../../core/environment/clock.ts";

/** One file a stream and day, one JSON object a line, on disk before the store forgets. */
export class JsonlArchive implements Archive {
  readonly #directory: string;
  readonly #clock: Clock;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  async append(stream: "messages" | "events", lines: readonly string[]): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const day = new Date(this.#clock.nowMs()).toISOString().slice(0, 10);
    await using file = await open(join(this.#directory, `${stream}-${day}.jsonl`), "a", 0o600);
    await file.appendFile(`${lines.join("\n")}\n`);
    await file.sync();
  }
}
