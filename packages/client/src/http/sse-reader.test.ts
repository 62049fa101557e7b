import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ServerSentEvent } from "./sse-parser.ts";
import { SseReader, type SseReaderOptions } from "./sse-reader.ts";

/** A body that hands over these pieces, and then ends, or never does. */
function bodyOf(pieces: readonly Uint8Array[], end: "end" | "silence" = "end"): ReadableStream<Uint8Array> {
  let index = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[index++];
      if (piece !== undefined) controller.enqueue(piece);
      else if (end === "end") controller.close();
      else return new Promise(() => {});
      return undefined;
    },
  });
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

async function allOf(reader: SseReader): Promise<readonly ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  for (let event = await reader.next(); event !== undefined; event = await reader.next()) events.push(event);
  return events;
}

async function read(text: string, options: SseReaderOptions = {}): Promise<readonly ServerSentEvent[]> {
  return allOf(new SseReader(bodyOf([bytesOf(text)]), options));
}

describe("server-sent events", () => {
  it("are read whatever the borders of chunks, the line ends and the comments", async () => {
    const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
    const word = fc.string({
      unit: fc.constantFrom("知", "微", "a", ":", " ", "é", "\u{1f600}"),
      maxLength: 6,
    });
    const lines = fc.array(word, { minLength: 1, maxLength: 3 });
    const event = fc.record({
      data: lines,
      name: fc.option(word),
      id: fc.option(word),
      comment: fc.option(word),
    });
    const written = fc.tuple(
      fc.array(event, { maxLength: 6 }),
      lineEnd,
      fc.boolean(),
      fc.infiniteStream(fc.nat(6)),
    );
    await fc.assert(
      fc.asyncProperty(written, async ([events, end, hasBom, sizes]) => {
        let lastId = "";
        const expected = events.map(({ data, name, id }) => {
          lastId = id ?? lastId;
          return {
            event: name === null || name === "" ? "message" : name,
            data: data.join("\n"),
            id: lastId,
          };
        });
        const text = events.map(({ data, name, id, comment }) =>
          [
            ...(comment === null ? [] : [`: ${comment}`]),
            ...(name === null ? [] : [`event: ${name}`]),
            ...data.map((line) => `data: ${line}`),
            ...(id === null ? [] : [`id: ${id}`]),
            "",
            "",
          ].join(end),
        );
        const bytes = bytesOf((hasBom ? "\ufeff" : "") + text.join(""));
        const pieces: Uint8Array[] = [];
        for (let start = 0; start < bytes.length;) {
          const size = Number(sizes.next().value);
          pieces.push(bytes.subarray(start, start + size));
          start += size;
        }
        assert.deepEqual(await allOf(new SseReader(bodyOf(pieces))), expected);
      }),
      { numRuns: 300 },
    );
  });

  it("come without what the specification says to leave out", async () => {
    assert.deepEqual(await read("id: 1\n\ndata\n\ndata:  x\nunknown: y\nevent\n\n"), [
      { event: "message", data: "", id: "1" },
      { event: "message", data: " x", id: "1" },
    ]);
    assert.deepEqual(await read("id: 1\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\n"), [
      { event: "message", data: "a", id: "1" },
      { event: "message", data: "b", id: "1" },
      { event: "message", data: "c", id: "" },
    ]);
    assert.deepEqual(await read("data: not ended\n"), []);
  });

  it("say how soon to come back", async () => {
    const reader = new SseReader(bodyOf([bytesOf("retry: 1500\nretry: soon\n\n: x\n\n")]));
    assert.equal(await reader.next(), undefined);
    assert.equal(reader.retryMs, 1_500);
  });

  it("may not be longer than the bound, in one line or in many", async () => {
    const options = { charsMax: 100 };
    assert.equal((await read(`data: ${"x".repeat(90)}\n\ndata: ${"y".repeat(90)}\n\n`, options)).length, 2);
    await assert.rejects(read("x".repeat(101), options), {
      code: "too_large",
      message: /more than 100 characters/,
    });
    await assert.rejects(read("data: 0123456789\n".repeat(20), options), { code: "too_large" });
  });
});

describe("a stream that is silent", () => {
  it("is dead after the idle time, and hung up on", async () => {
    let isCanceled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytesOf(": hello\n\ndata: 1\n\n")),
      cancel: () => {
        isCanceled = true;
      },
    });
    const reader = new SseReader(body, { idleMs: 20 });
    assert.equal((await reader.next())?.data, "1");
    await assert.rejects(reader.next(), { code: "unavailable", message: /silent for 20 ms/ });
    assert.ok(isCanceled);
    assert.equal(await reader.next(), undefined);
  });

  it("is not dead while its reader is slow", async () => {
    const reader = new SseReader(bodyOf([bytesOf("data: 1\n\n"), bytesOf("data: 2\n\n")]), { idleMs: 20 });
    await reader.next();
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.equal((await reader.next())?.data, "2");
  });

  it("is told from one that flows by its first byte, be it only a comment", async () => {
    assert.equal(await new SseReader(bodyOf([bytesOf(":")], "silence")).beginsWithin(5_000), "flows");
    assert.equal(await new SseReader(bodyOf([], "silence")).beginsWithin(10), "silent");
    assert.equal(await new SseReader(bodyOf([])).beginsWithin(5_000), "ended");
  });

  it("is left when the signal is aborted, with its reason", async () => {
    const leaving = new AbortController();
    const reader = new SseReader(bodyOf([], "silence"), { signal: leaving.signal });
    const reading = reader.next();
    leaving.abort(new Error("gone for lunch"));
    await assert.rejects(reading, /gone for lunch/);
    await assert.rejects(reader.next(), /gone for lunch/);
  });
});
