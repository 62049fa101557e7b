import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventStreamReader, type StreamEvent } from "./event-stream-reader.ts";

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENTS = [
  { id: "7", data: '{"subject":"构建"}' },
  { id: "8", data: '{"subject":"a: b"}' },
];
const ANSWER = Buffer.concat([
  Buffer.from(HEAD),
  chunk("retry: 750\n\n: heartbeat\n\n"),
  // An event in one chunk, and one that begins in one chunk and ends in the next.
  chunk(`id: 7\nevent: message\ndata: ${EVENTS[0]?.data}\n\nid: 8\nevent: mess`),
  chunk(`age\ndata: ${EVENTS[1]?.data}\n\n`),
  chunk(""),
]);

describe("the reader of an event stream", () => {
  it("finds the same events wherever the bytes are cut", () => {
    for (let cut = 0; cut <= ANSWER.length; cut += 1) {
      const reader = new EventStreamReader();
      const events = [...reader.push(ANSWER.subarray(0, cut)), ...reader.push(ANSWER.subarray(cut))];
      assert.deepEqual(events, EVENTS, `cut at byte ${cut}`);
      assert.deepEqual([reader.status, reader.retryMs, reader.isEnded], [200, 750, true]);
    }
  });

  it("gives an event with its last byte, and not before", () => {
    const reader = new EventStreamReader();
    const seen: (StreamEvent & { readonly at: number })[] = [];
    for (const [at, byte] of ANSWER.entries()) {
      for (const event of reader.push(Buffer.from([byte]))) seen.push({ ...event, at });
    }
    const ends = ["id: 8\nevent: mess\r\n", `${EVENTS[1]?.data}\n\n\r\n`].map(
      (text) => ANSWER.indexOf(text) + Buffer.byteLength(text) - 1,
    );
    assert.deepEqual(
      seen.map(({ id, at }) => [id, at]),
      [
        ["7", ends[0]],
        ["8", ends[1]],
      ],
    );
  });

  it("reports an answer that is not a stream", () => {
    const reader = new EventStreamReader();
    const body = '{"error":{}}\r\n';
    assert.deepEqual(reader.push(Buffer.from(`HTTP/1.1 503 No\r\nContent-Length: 14\r\n\r\n${body}`)), []);
    assert.deepEqual([reader.status, reader.isEnded], [503, false]);
  });
});

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}
