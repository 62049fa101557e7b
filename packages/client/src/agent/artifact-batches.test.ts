import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ArtifactBatches, type ArtifactBatch, type ArtifactPieces, withPiece } from "./artifact-batches.ts";
import { gate } from "../../testing/agent-setup.ts";

const never = new AbortController();

async function batchesOf(pieces: ArtifactPieces): Promise<readonly ArtifactBatch[]> {
  const batches: ArtifactBatch[] = [];
  for await (const batch of ArtifactBatches.of(pieces, never)) batches.push(batch);
  return batches;
}

describe("pieces of an artifact", () => {
  it("go out together when they come together, and text becomes one text", async () => {
    const file = { url: "https://example.org/图.png" };
    const batches = await batchesOf(["你", "好", "", file, [{ text: "世" }, { text: "界" }]]);
    assert.deepEqual(batches, [{ parts: [{ text: "你好" }, file, { text: "世界" }], isLast: true }]);
  });

  it("are one empty last batch where there are none", async () => {
    assert.deepEqual(await batchesOf([]), [{ parts: [], isLast: true }]);
  });

  it("go out while the rest is still to come", async () => {
    const seen = gate();
    async function* words(): AsyncGenerator<string> {
      yield "first";
      await seen.passed;
      yield "second";
    }
    const batches: ArtifactBatch[] = [];
    for await (const batch of ArtifactBatches.of(words(), never)) {
      batches.push(batch);
      seen.open();
    }
    assert.deepEqual(batches[0], { parts: [{ text: "first" }], isLast: false });
    assert.deepEqual(
      batches.flatMap(({ parts }) => parts),
      [{ text: "first" }, { text: "second" }],
    );
    assert.deepEqual(
      batches.map(({ isLast }) => isLast),
      batches.map((_, index) => index === batches.length - 1),
    );
  });

  it("go out early when there are many, and none is taken for which there is no room", async () => {
    let made = 0;
    function* lines(): Generator<string> {
      for (; made < 100; made += 1) yield "长".repeat(1_000);
    }
    const reader = ArtifactBatches.of(lines(), never);
    const first = await reader.next();
    assert.ok(first.done !== true);
    const chars = String(first.value.parts[0]?.["text"]).length;
    assert.ok(chars >= 16_384 && chars < 18_000, `${chars} characters`);
    assert.ok(made < 40, `${made} lines were made before the first was taken`);
    let all = chars;
    for await (const { parts } of reader) for (const part of parts) all += String(part["text"]).length;
    assert.equal(all, 100_000);
  });

  it("fail as their source does", async () => {
    async function* broken(): AsyncGenerator<string> {
      yield "half";
      throw new Error("模型断了");
    }
    await assert.rejects(batchesOf(broken()), { message: "模型断了" });
  });

  it("are waited for no longer once the work is aborted, and their source is ended", async () => {
    const aborting = new AbortController();
    const ended = gate();
    const hold = gate();
    async function* slow(): AsyncGenerator<string> {
      try {
        await hold.passed;
        yield "too late";
      } finally {
        ended.open();
      }
    }
    const reader = ArtifactBatches.of(slow(), aborting);
    const first = reader.next();
    aborting.abort(new Error("canceled"));
    await assert.rejects(first, { message: "canceled" });
    hold.open();
    await ended.passed;
  });

  it("stay apart where they are texts of different kinds", () => {
    const parts = withPiece(
      [{ text: "a", mediaType: "text/plain" }],
      [{ text: "b", mediaType: "text/markdown" }],
    );
    assert.equal(parts.length, 2);
    assert.deepEqual(withPiece(parts, { text: "c", mediaType: "text/markdown" })[1], {
      text: "bc",
      mediaType: "text/markdown",
    });
  });
});
