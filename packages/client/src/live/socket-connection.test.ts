import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Failure } from "../http/http-answer.ts";
import { SocketConnection } from "./socket-connection.ts";
import type { WebSocketEvent, WebSocketLike } from "../http/relay-client-options.ts";
import { SocketRequests } from "./socket-requests.ts";

/** A socket whose other side is the test. */
class FakeSocket implements WebSocketLike {
  static last: FakeSocket | undefined;
  readonly sent: string[] = [];
  readonly #listeners = new Map<string, ((event: WebSocketEvent) => void)[]>();

  constructor() {
    FakeSocket.last = this;
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.sent.push("close");
  }

  addEventListener(type: string, listener: (event: WebSocketEvent) => void): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  tell(event: WebSocketEvent): void {
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }
}

async function open() {
  const frames: unknown[] = [];
  const options = { openMs: 5_000, idleMs: 60_000, onFrame: (frame: unknown) => void frames.push(frame) };
  const address = { WebSocket: FakeSocket, url: "https://relay.example/mailbox/a/ws", apiKey: undefined };
  const opening = SocketConnection.open(address, options);
  const socket = FakeSocket.last;
  assert.ok(socket);
  socket.tell({ type: "open" });
  const connection = await opening;
  assert.ok(connection);
  return { connection, socket, frames };
}

describe("a connection that was broken off", () => {
  it("has ended at once, and what still comes over it is not heard", async () => {
    const { connection, socket, frames } = await open();
    socket.tell({ type: "message", data: '{"type":"mail","messages":[],"cursor":"1"}' });
    connection.breakOff();
    socket.tell({ type: "message", data: '{"type":"mail","messages":[],"cursor":"2"}' });
    assert.deepEqual(await connection.ended, { code: 1006, reason: "" });
    assert.deepEqual(frames, [{ type: "mail", messages: [], cursor: "1" }]);
    assert.deepEqual(socket.sent, ["close"]);
  });

  it("takes no request any more, so that the request is known not to be done", async () => {
    const { connection, socket } = await open();
    connection.breakOff();
    const ask = { verb: "lease", input: {}, limitMs: 5_000 } as const;
    const result = await new SocketRequests().ask(connection, ask);
    assert.ok(result instanceof Failure);
    assert.equal(result.outcome, "not_done");
    assert.deepEqual(socket.sent, ["close"]);
  });
});

describe("frames of a socket", () => {
  it("that are binary, no JSON or none of ours are not heard", async () => {
    const { connection, socket, frames } = await open();
    for (const data of [new ArrayBuffer(1), "{", "null", "[]", '{"hello":1}'])
      socket.tell({ type: "message", data });
    assert.deepEqual(frames, []);
    connection.breakOff();
  });

  it("end with the code and reason that the other side gave, and closing does not wait for it for ever", async () => {
    const ended = await open();
    ended.socket.tell({ type: "close", code: 4408, reason: "70" });
    assert.deepEqual(await ended.connection.ended, { code: 4408, reason: "70" });
    const { connection } = await open();
    await connection.close();
    assert.deepEqual(await connection.ended, { code: 1006, reason: "" });
  });
});
