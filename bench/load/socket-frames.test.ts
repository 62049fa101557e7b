import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { WebSocketServer } from "ws";
import { clientFrame, FrameReader, OPCODES } from "./socket-frames.ts";
import { SocketStream } from "./socket-stream.ts";

/** Around the lengths at which a header grows. */
const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000];

describe("the reader of frames", () => {
  it("finds the same frames wherever the bytes are cut", () => {
    const texts = ["", "知微", "x".repeat(125), "y".repeat(126), "z".repeat(65_536)];
    const bytes = Buffer.concat(texts.map((text) => serverFrame(text)));
    // Inside of the long frame nothing changes from one byte to the next.
    const cuts = Array.from({ length: bytes.length + 1 }, (_, cut) => cut).filter(
      (cut) => cut < 400 || cut > bytes.length - 100 || cut % 1_000 === 0,
    );
    for (const cut of cuts) {
      const reader = new FrameReader();
      const frames = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
      assert.deepEqual(
        frames.map(({ payload }) => payload.toString("utf8")),
        texts,
        `cut at byte ${cut}`,
      );
    }
  });

  it("puts a long frame together that comes byte by byte", () => {
    const reader = new FrameReader();
    const text = "构".repeat(300);
    const frames = [...serverFrame(text)].flatMap((byte) => reader.push(Buffer.from([byte])));
    assert.deepEqual(
      frames.map(({ opcode, payload }) => [opcode, payload.toString("utf8")]),
      [[OPCODES.text, text]],
    );
  });
});

describe("a frame of the load", () => {
  it("is understood by a server, at every length", async () => {
    await using server = await startServer();
    const texts = LENGTHS.map((length) => "0123456789".repeat(length / 10 + 1).slice(0, length));
    const heard: string[] = [];
    server.ws.on("connection", (socket) => {
      socket.on("message", (data: Buffer) => {
        heard.push(data.toString("utf8"));
        if (heard.length === texts.length) socket.close(1001, "够了");
      });
    });
    const reason = await new Promise<Error>((onClose) => {
      const address = { port: server.port, agent: "a", since: undefined, localAddress: undefined };
      const stream = new SocketStream(address, {
        onOpen: () => {
          for (const text of texts) stream.send(clientFrame(OPCODES.text, Buffer.from(text)));
        },
        onMessages: () => undefined,
        onClose,
      });
    });
    assert.deepEqual(heard, texts);
    assert.equal(reason.message, "the server closed the socket: 够了");
  });
});

/** As a server sends it: without a mask. */
function serverFrame(text: string): Buffer {
  const masked = clientFrame(OPCODES.text, Buffer.from(text));
  const length = Buffer.byteLength(text);
  const header = Buffer.from(masked.subarray(0, masked.length - length - 4));
  header[1] = (header[1] ?? 0) & 0x7f;
  return Buffer.concat([header, Buffer.from(text)]);
}

async function startServer(): Promise<
  AsyncDisposable & { readonly ws: WebSocketServer; readonly port: number }
> {
  const ws = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(ws, "listening");
  return {
    ws,
    port: (ws.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const client of ws.clients) client.terminate();
      ws.close();
      await once(ws, "close");
    },
  };
}
