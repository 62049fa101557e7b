import assert from "node:assert/strict";
import { appendFile, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { DAY_MS } from "../../../testing/core-on-memory.ts";
import { FakeClock } from "../../../testing/fake-clock.ts";
import { JsonlArchive } from "./jsonl-archive.ts";

interface ArchiveDirectory extends AsyncDisposable {
  readonly directory: string;
  readonly clock: FakeClock;
  /** What each file holds, by name. */
  files(): Promise<Readonly<Record<string, string>>>;
}

async function newDirectory(): Promise<ArchiveDirectory> {
  const root = await mkdtemp(join(tmpdir(), "a2a-relay-archive-"));
  const directory = join(root, "档案");
  return {
    directory,
    clock: new FakeClock(),
    files: async () => {
      const names = (await readdir(directory)).toSorted();
      const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
      return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? ""]));
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

describe("the archive", () => {
  it("appends lines to one private file for each stream and day", async () => {
    await using at = await newDirectory();
    const archive = new JsonlArchive(at.directory, at.clock);
    await archive.append("events", [["一"], ["二"]]);
    await archive.append("events", [["三"]]);
    await archive.append("messages", [["信"]]);
    at.clock.advance(DAY_MS);
    await archive.append("events", [["四"]]);
    assert.deepEqual(await at.files(), {
      "events-2026-05-08.jsonl": '["一"]\n["二"]\n["三"]\n',
      "events-2026-05-09.jsonl": '["四"]\n',
      "messages-2026-05-08.jsonl": '["信"]\n',
    });
    if (process.platform === "win32") return;
    assert.equal((await stat(at.directory)).mode & 0o077, 0);
    assert.equal((await stat(join(at.directory, "events-2026-05-08.jsonl"))).mode & 0o077, 0);
  });

  it("shares its directory with other relays: no two write to the same file", async () => {
    await using at = await newDirectory();
    const relays = ["甲", "乙", "丙"].map((name) => ({
      name,
      archive: new JsonlArchive(at.directory, at.clock),
    }));
    for (const round of [1, 2]) {
      await Promise.all(relays.map(({ name, archive }) => archive.append("events", [[`${name}${round}`]])));
    }
    const files = await at.files();
    assert.deepEqual(Object.keys(files), [
      "events-2026-05-08.2.jsonl",
      "events-2026-05-08.3.jsonl",
      "events-2026-05-08.jsonl",
    ]);
    assert.deepEqual(Object.values(files).toSorted(), [
      '["丙1"]\n["丙2"]\n',
      '["乙1"]\n["乙2"]\n',
      '["甲1"]\n["甲2"]\n',
    ]);
  });

  it("keeps the lines of concurrent long appends whole", async () => {
    await using at = await newDirectory();
    const archive = new JsonlArchive(at.directory, at.clock);
    const lines = ["a", "b", "c"].map((text) => text.repeat(2 ** 21));
    await Promise.all(lines.map((line) => archive.append("messages", [[line]])));
    assert.equal(
      (await at.files())["messages-2026-05-08.jsonl"],
      lines.map((line) => `["${line}"]\n`).join(""),
    );
  });

  it("leaves a file alone whose last line a crash has torn", async () => {
    await using at = await newDirectory();
    await new JsonlArchive(at.directory, at.clock).append("events", [["一"]]);
    await appendFile(join(at.directory, "events-2026-05-08.jsonl"), '["二"');
    await new JsonlArchive(at.directory, at.clock).append("events", [["二"]]);
    assert.deepEqual(await at.files(), {
      "events-2026-05-08.2.jsonl": '["二"]\n',
      "events-2026-05-08.jsonl": '["一"]\n["二"',
    });
  });

  it("begins a new file when its file was moved away", async () => {
    await using at = await newDirectory();
    const archive = new JsonlArchive(at.directory, at.clock);
    await archive.append("events", [["一"]]);
    await rename(join(at.directory, "events-2026-05-08.jsonl"), join(at.directory, "old"));
    await archive.append("events", [["二"]]);
    assert.deepEqual(await at.files(), { "events-2026-05-08.jsonl": '["二"]\n', old: '["一"]\n' });
  });
});
