import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { refused } from "../../../testing/refusal.ts";
import { parseJson, readBody } from "./read-body.ts";

function streamOf(...chunks: readonly (string | Buffer)[]): Readable {
  return Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
}

async function readJson(stream: Readable, bytesMax: number): Promise<unknown> {
  return parseJson(await readBody(stream, bytesMax));
}

describe("reading a body", () => {
  it("gives the JSON, whole or in pieces, even where a character is cut in two", async () => {
    const text = JSON.stringify({ body: "知微你好🦊" });
    assert.deepEqual(await readJson(streamOf(text), 1_000), JSON.parse(text));
    const bytes = Buffer.from(text);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
      assert.deepEqual(await readJson(streamOf(...pieces), 1_000), JSON.parse(text));
    }
  });

  it("gives undefined for an empty body", async () => {
    assert.equal(await readJson(streamOf(), 1_000), undefined);
  });

  it("takes exactly as many bytes as allowed", async () => {
    assert.equal(await readJson(streamOf('"12345678"'), 10), "12345678");
    await refused(readJson(streamOf('"123456789"'), 10), "too_large", /10 bytes/);
    assert.equal(await readJson(streamOf('"知"'), 5), "知");
    await refused(readJson(streamOf('"知"'), 4), "too_large");
  });

  it("reads a body that is too large to its end before it refuses", async () => {
    const stream = new PassThrough();
    const reading = readJson(stream, 10);
    let isSettled = false;
    const settled = reading.catch(() => {
      isSettled = true;
    });
    stream.write("x".repeat(1_000));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isSettled, false);
    stream.end("x".repeat(1_000));
    await settled;
    assert.equal(stream.readableEnded, true);
  });

  it("refuses a body that is announced to be too large, though less arrives", async () => {
    const stream = Object.assign(new PassThrough(), { headers: { "content-length": "190000" } });
    const refusal = refused(readJson(stream, 100_000), "too_large", /100000 bytes/);
    stream.end("x".repeat(99_000));
    await refusal;
  });

  it("drains a bounded number of bytes", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    let sent = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        sent += chunk.length;
        yield chunk;
      }
    }
    const stream = Readable.from(endless());
    await refused(readJson(stream, 10), "too_large");
    assert.ok(sent <= LIMITS.drainBytesMax + 20 * chunk.length, `${sent}`);
    stream.destroy();
  });

  it("refuses what is not UTF-8, or not JSON, and says why", async () => {
    await refused(readJson(streamOf(Buffer.from([0x22, 0xff, 0x22])), 10), "invalid_argument", /UTF-8/);
    await refused(readJson(streamOf("{"), 10), "invalid_argument", /^body: is not valid JSON: /);
    const long = await refused(readJson(streamOf("x".repeat(5_000)), 10_000), "invalid_argument");
    assert.ok(long.message.length < 300);
  });

  it("refuses a broken connection, also one that broke before", async () => {
    const gone = new PassThrough();
    gone.destroy();
    await refused(readJson(gone, 10), "invalid_argument", /connection broke/);
    const stream = new PassThrough();
    const reading = readJson(stream, 10);
    stream.write("{");
    stream.destroy(new Error("ECONNRESET"));
    await refused(reading, "invalid_argument", /connection broke/);
  });
});

const BODY_MAX = 1_000;

function requestWith(body: string): string {
  return `POST / HTTP/1.1\r\nhost: 知微\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** A server that answers each request with what it read, and keeps the requests. */
async function talk(
  act: (client: Socket, requests: readonly IncomingMessage[]) => Promise<void>,
): Promise<void> {
  const requests: IncomingMessage[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push(request);
    const said = await readJson(request, BODY_MAX).catch((reason: unknown) => RelayError.from(reason).code);
    response.end(JSON.stringify({ said }));
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  try {
    await act(client, requests);
  } finally {
    client.destroy();
    server.close();
  }
}

/** Waits for so many answers. */
async function answers(client: Socket, count: number): Promise<readonly unknown[]> {
  let text = "";
  for await (const chunk of client.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const found = text.match(/\{"said":.*\}/g) ?? [];
    if (found.length >= count) return found.map((each) => JSON.parse(each) as unknown);
  }
  return assert.fail(`the connection ended after ${text}`);
}

describe("reading the body of a request", () => {
  it("reads one request after the other on a connection, each to its end", async () => {
    await talk(async (client, requests) => {
      for (const body of ["知微", "你好", "🦊"]) {
        client.write(requestWith(JSON.stringify(body)));
        assert.deepEqual(await answers(client, 1), [{ said: body }]);
      }
      assert.ok(requests.every(({ readableEnded }) => readableEnded));
    });
  });

  it("separates pipelined requests", async () => {
    await talk(async (client) => {
      client.write(["一", "二", "三"].map((body) => requestWith(JSON.stringify(body))).join(""));
      assert.deepEqual(await answers(client, 3), [{ said: "一" }, { said: "二" }, { said: "三" }]);
    });
  });

  it("waits for the rest of one that arrives in pieces", async () => {
    await talk(async (client, requests) => {
      const bytes = Buffer.from(requestWith(JSON.stringify("知微你好")));
      client.write(bytes.subarray(0, -7));
      while (requests.length === 0) await nextTurn();
      await nextTurn();
      client.write(bytes.subarray(-7));
      assert.deepEqual(await answers(client, 1), [{ said: "知微你好" }]);
    });
  });

  it("refuses one that is too long, and reads the next", async () => {
    await talk(async (client) => {
      client.write(requestWith(JSON.stringify("x".repeat(BODY_MAX))));
      assert.deepEqual(await answers(client, 1), [{ said: "too_large" }]);
      client.write(requestWith(JSON.stringify("好")));
      assert.deepEqual(await answers(client, 1), [{ said: "好" }]);
    });
  });
});
