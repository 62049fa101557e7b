import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { refused } from "../../../testing/refusal.ts";
import type { Anchor } from "../../core/ports/archive.ts";
import { AnchorFile } from "./anchor-file.ts";

const SMALL = { fileBytesMax: 2_000, keptBytes: 600 };

function anchor(seq: number, tenant = "default"): Anchor {
  return { tenant, seq, hash: seq.toString(16).padStart(64, "0"), atMs: NOON_MS + seq };
}

async function seqsOf(anchors: AnchorFile, tenant = "default"): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const { seq } of anchors.history(tenant)) seqs.push(seq);
  return seqs;
}

describe("a file of anchors", () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), "a2a-relay-anchors-"));
  });
  after(() => rm(root, { recursive: true }));

  async function anchorPath(): Promise<{ readonly directory: string; readonly path: string }> {
    const directory = await mkdtemp(join(root, "anchors-"));
    return { directory, path: join(directory, "anchors.jsonl") };
  }

  it("that does not exist holds none", async () => {
    const { directory } = await anchorPath();
    const anchors = new AnchorFile(directory);
    assert.deepEqual(await anchors.latest(), new Map());
    assert.deepEqual(await seqsOf(anchors), []);
  });

  it("holds one readable line for each, readable by its owner alone", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(directory);
    await anchors.keep([anchor(1), anchor(7, "甲")]);
    await anchors.keep([anchor(2)]);
    const lines = (await readFile(path, "utf8")).split("\n");
    assert.equal(lines.length, 4);
    assert.deepEqual(JSON.parse(lines[0] ?? ""), {
      tenant: "default",
      seq: 1,
      hash: anchor(1).hash,
      at: "2026-05-08T12:00:00.001Z",
    });
    if (process.platform !== "win32") assert.equal((await stat(path)).mode & 0o077, 0);
  });

  it("answers with the newest of every tenant and with all of one, also to the next process", async () => {
    const { directory } = await anchorPath();
    const first = new AnchorFile(directory);
    await first.keep([anchor(1), anchor(7, "甲")]);
    await first.keep([anchor(2)]);
    for (const anchors of [first, new AnchorFile(directory)]) {
      assert.deepEqual([...(await anchors.latest()).values()], [anchor(2), anchor(7, "甲")]);
      assert.deepEqual(await seqsOf(anchors), [1, 2]);
      assert.deepEqual(await seqsOf(anchors, "甲"), [7]);
      assert.deepEqual(await seqsOf(anchors, "乙"), []);
    }
  });

  it("sees what another program did to the file meanwhile", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(directory);
    await anchors.keep([anchor(1)]);
    await new AnchorFile(directory).keep([anchor(2)]);
    assert.equal((await anchors.latest()).get("default")?.seq, 2);
    await rm(path);
    assert.equal((await anchors.latest()).size, 0);
    await anchors.keep([anchor(3)]);
    assert.deepEqual(await seqsOf(anchors), [3]);
  });

  it("ignores a last line that a crash has torn", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(directory);
    await anchors.keep([anchor(1)]);
    const whole = await readFile(path, "utf8");
    await appendFile(path, '{"tenant":"default","seq":2,"ha');
    assert.deepEqual(await seqsOf(anchors), [1]);
    await anchors.keep([anchor(3)]);
    const closed = await readFile(path, "utf8");
    // Torn once more, anywhere, while that line is closed.
    for (let length = whole.length; length < closed.length; length += 1) {
      await writeFile(path, closed.slice(0, length));
      await anchors.keep([anchor(4)]);
      assert.deepEqual(await seqsOf(new AnchorFile(directory)), [1, 4]);
    }
    await writeFile(path, closed);
    await anchors.keep([anchor(4)]);
    assert.deepEqual(await seqsOf(anchors), [1, 3, 4]);
  });

  for (const [what, spoilt] of [
    ["no JSON", "nonsense"],
    ["another JSON", "[1]"],
    ["a hash that is none", JSON.stringify({ ...anchor(2), hash: "x", at: "2026-05-08T12:00:00Z" })],
    ["a time that is none", JSON.stringify({ ...anchor(2), at: "yesterday" })],
    ["nothing", ""],
  ] as const) {
    it(`with a line of ${what} is refused: it was damaged`, async () => {
      const { directory, path } = await anchorPath();
      const anchors = new AnchorFile(directory);
      await anchors.keep([anchor(1)]);
      const good = await readFile(path, "utf8");
      for (const text of [`${good}${spoilt}\n${good}`, `${good}${spoilt}\n`]) {
        await writeFile(path, text);
        await refused(seqsOf(anchors), "unavailable", /line 2 of anchors.jsonl is not an anchor/);
        await refused(anchors.latest(), "unavailable", /line 2/);
        await refused(anchors.keep([anchor(3)]), "unavailable", /line 2/);
        assert.equal(await readFile(path, "utf8"), text);
      }
    });
  }

  it("that cannot be read or written says so", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(join(path, "not-a-directory"));
    await writeFile(path, "");
    await refused(anchors.latest(), "unavailable", /cannot be read \(ENOTDIR\)/);
    await refused(seqsOf(anchors), "unavailable", /cannot be read \(ENOTDIR\)/);
    const gone = new AnchorFile(join(directory, "gone"));
    await refused(gone.keep([anchor(1)]), "unavailable", /cannot be written \(ENOENT\)/);
  });

  it("stays bounded, and keeps every tenant", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(directory, SMALL);
    await anchors.keep([anchor(1, "甲")]);
    for (let seq = 1; seq <= 100; seq += 1) {
      await anchors.keep([anchor(seq)]);
      assert.ok((await stat(path)).size < SMALL.fileBytesMax + 300);
    }
    assert.deepEqual(await readdir(directory), ["anchors.jsonl"]);
    if (process.platform !== "win32") assert.equal((await stat(path)).mode & 0o077, 0);
    const seqs = await seqsOf(anchors);
    assert.ok(seqs.length >= 3, "recent ones are still there");
    assert.deepEqual(
      seqs,
      [...seqs].toSorted((one, other) => one - other),
    );
    for (const reader of [anchors, new AnchorFile(directory)]) {
      assert.deepEqual([...(await reader.latest()).values()], [anchor(1, "甲"), anchor(100)]);
    }
  });

  it("keeps growing where the file must not be replaced", async () => {
    const { directory, path } = await anchorPath();
    const anchors = new AnchorFile(directory, SMALL);
    // Something else has the name already.
    await mkdir(join(directory, "anchors.jsonl.new"));
    for (let seq = 1; seq <= 50; seq += 1) await anchors.keep([anchor(seq)]);
    assert.equal((await seqsOf(anchors)).length, 50);
    assert.ok((await stat(path)).size > SMALL.fileBytesMax);
  });
});
