import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const MIB = 1024 * 1024;
const JSON_TYPE = { "content-type": "application/json" };

/** A message whose JSON has exactly this many bytes. */
function messageOf(bytes: number): string {
  const empty = JSON.stringify({ from: LULU, to: ZHIWEI, body: "" });
  return JSON.stringify({ from: LULU, to: ZHIWEI, body: "x".repeat(bytes - empty.length) });
}

function statusOf(answer: string): string {
  return answer.split("\r\n", 1)[0] ?? "";
}

describe("a body over the limit", () => {
  it("is refused by one byte", async () => {
    await using relay = await openHttpRelay();
    const over = relay.post("/messages", messageOf(LIMITS.bodyBytesMax + 1));
    const error = await relay.refused(over, "too_large", /1048576 bytes/);
    assert.deepEqual(error.details, { limit: LIMITS.bodyBytesMax });
    const most = await relay.post("/messages", messageOf(LIMITS.bodyBytesMax - 500));
    assert.equal(most.status, 201);
  });

  it("is what its sender wrote: what the relay adds to a message does not count", async () => {
    await using relay = await openHttpRelay();
    const { status, text } = await relay.post("/messages", messageOf(LIMITS.bodyBytesMax));
    assert.equal(status, 201, text.slice(0, 300));
    assert.ok(text.length > LIMITS.bodyBytesMax);
  });

  it("counts a text once that stands in the parts of a message", async () => {
    await using relay = await openHttpRelay();
    const parts = [{ text: "x".repeat(LIMITS.bodyBytesMax / 2) }, { text: "y".repeat(1_000) }];
    const message = { from: LULU, to: ZHIWEI, parts };
    assert.equal((await relay.post("/messages", message)).status, 201);
    const long = "x".repeat(LIMITS.bodyBytesMax + LIMITS.messageBytesAdded);
    const batch = { messages: [{ ...message, parts: [{ text: long }] }] };
    const { json } = await relay.post("/messages/batch", batch);
    assert.equal(json.results[0]?.status, 413);
  });

  it("gets its 413 over a socket that announced the length and sends all of it first", async () => {
    await using relay = await openHttpRelay();
    const body = Buffer.alloc(3 * MIB, "x");
    const head = `POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    const answer = await relay.bytes(
      `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      body,
    );
    assert.match(statusOf(answer), /^HTTP\/1\.1 413 /);
    assert.match(answer, /"code":"too_large"/);
  });

  it("gets its 413 over a socket that sends chunks without a length", async () => {
    await using relay = await openHttpRelay();
    const head = `POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(0x10000, "x"), Buffer.from("\r\n")]);
    const chunks = Array.from({ length: 48 }, () => chunk);
    const answer = await relay.bytes(
      `${head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      ...chunks,
      "0\r\n\r\n",
    );
    assert.match(statusOf(answer), /^HTTP\/1\.1 413 /);
  });

  it("gets its 413 through fetch, with a length and as a stream", async () => {
    await using relay = await openHttpRelay();
    const bodies = [
      () => "x".repeat(3 * MIB),
      () => Readable.toWeb(Readable.from(Array.from({ length: 48 }, () => Buffer.alloc(0x10000, "x")))),
    ];
    for (const body of bodies) {
      // The types of fetch do not know `duplex` yet, which a stream needs.
      const init = { method: "POST", headers: JSON_TYPE, body: body() as BodyInit, duplex: "half" };
      const answer = await fetch(`${relay.url}/messages`, init);
      assert.equal(answer.status, 413);
      const { error } = (await answer.json()) as { error: { code: string } };
      assert.equal(error.code, "too_large");
    }
  });

  it("is the last that is read from its connection: nothing of it is taken for a request", async () => {
    await using relay = await openHttpRelay();
    const inner = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const body = inner.repeat((2 * MIB) / inner.length);
    const head = `POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    const next = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const answer = await relay.bytes(`${head}Content-Length: ${body.length}\r\n\r\n`, body, next);
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ["413"]);
    assert.match(answer, /^connection: close\r$/im);
  });

  it("is not one with a member that is too long: the next message is answered too", async () => {
    await using relay = await openHttpRelay();
    const requestOf = (message: object, more = ""): string => {
      const body = JSON.stringify({ from: LULU, to: ZHIWEI, ...message });
      const head = "POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
      return `${head}${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    };
    const long = requestOf({ subject: "长".repeat(501), body: "x" });
    const answer = await relay.bytes(long + requestOf({ body: "你好" }, "Connection: close\r\n"));
    const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    assert.deepEqual(statuses, ["413", "201"]);
  });

  it("on a batch is larger, and ends as well", async () => {
    await using relay = await openHttpRelay();
    const body = Buffer.alloc(LIMITS.batchBodyBytesMax + 1, "x");
    await relay.refused(
      relay.call("POST", "/messages/batch", body, { headers: JSON_TYPE }),
      "too_large",
      /16777216/,
    );
  });

  it("that never ends is cut off, and the relay goes on", async () => {
    await using relay = await openHttpRelay();
    const socket = connect({ host: "127.0.0.1", port: relay.port });
    const head = `POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
    const sentBytes = await sendUntilClosed(socket);
    assert.ok(sentBytes >= LIMITS.drainBytesMax, `cut off after ${sentBytes} bytes`);
    assert.equal((await relay.get("/health")).status, 200);
  });
});

describe("a body that came with its headers", () => {
  it("comes to its end with its answer, also where that goes on", async () => {
    await using relay = await openHttpRelay();
    const requests: IncomingMessage[] = [];
    const note = (started: unknown): void => {
      const { request } = started as { readonly request: IncomingMessage };
      if (request.method === "POST" && request.socket.localPort === relay.port) requests.push(request);
    };
    subscribe("http.server.request.start", note);
    try {
      await relay.send();
      const message = { messageId: "m-一", role: "ROLE_USER", parts: [{ text: "慢慢来" }] };
      const call = { jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } };
      const { text } = await relay.post(`/agents/${ZHIWEI}/a2a`, call);
      assert.match(text, /TASK_STATE_SUBMITTED/);
      assert.deepEqual(
        requests.map(({ readableEnded }) => readableEnded),
        [true, true],
      );
    } finally {
      unsubscribe("http.server.request.start", note);
    }
  });
});

describe("a client that goes away", () => {
  it("in the middle of its body leaves no trace", async () => {
    await using relay = await openHttpRelay();
    for (const sent of ["", '{"from":"lulu","to":"zhi', '{"from":"lulu","to":"zhiwei","body":"x"}']) {
      const socket = connect({ host: "127.0.0.1", port: relay.port });
      const head = "POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
      socket.on("error", () => undefined);
      await new Promise<void>((resolve) => {
        socket.write(`${head}Content-Length: 5000\r\n\r\n${sent}`, () => {
          socket.resetAndDestroy();
          resolve();
        });
      });
    }
    assert.equal((await relay.get("/health")).status, 200);
    assert.equal((await relay.get("/events?type=message.accepted")).json.events.length, 0);
  });
});

/** Chunk after chunk, as fast as the other side takes them, until it has had enough. */
function sendUntilClosed(socket: Socket): Promise<number> {
  const chunk = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(0x100000, "x"), Buffer.from("\r\n")]);
  const { promise, resolve } = Promise.withResolvers<number>();
  let sentBytes = 0;
  const send = (): void => {
    while (!socket.destroyed && socket.write(chunk)) sentBytes += 0x100000;
    sentBytes += 0x100000;
  };
  socket.on("drain", send);
  socket.on("error", () => undefined);
  socket.on("close", () => resolve(sentBytes));
  socket.resume();
  send();
  return promise;
}
