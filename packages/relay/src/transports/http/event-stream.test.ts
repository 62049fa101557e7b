import assert from "node:assert/strict";
import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError } from "@a2a-relay/protocol";
import {
  beginningWith,
  type EventStream,
  type ServerSentEvent,
  type StreamHost,
  type StreamKind,
  type StreamMeter,
  writeEvents,
} from "./event-stream.ts";

const PAGE: readonly ServerSentEvent[] = [
  { id: "7", event: "message", data: JSON.stringify("长".repeat(30_000)) },
];

/** A connection whose other side takes nothing until `takeAll`. */
class StubbornSocket extends Socket {
  readonly taken: string[] = [];
  isTaking = false;
  #take: (() => void) | undefined;

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.#take = (): void => {
      this.#take = undefined;
      this.taken.push(chunk.toString());
      done();
    };
    if (this.isTaking) this.#take();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer | string }[], done: () => void): void {
    this._write(chunks.map(({ chunk }) => chunk.toString()).join(""), "", done);
  }

  takeAll(): void {
    this.isTaking = true;
    this.#take?.();
  }
}

class CountingMeter implements StreamMeter {
  readonly open = new Map<StreamKind, number>();
  readonly slow = new Map<StreamKind, number>();

  opened(kind: StreamKind): void {
    this.open.set(kind, (this.open.get(kind) ?? 0) + 1);
  }

  closed(kind: StreamKind): void {
    this.open.set(kind, (this.open.get(kind) ?? 0) - 1);
  }

  cutOff(kind: StreamKind): void {
    this.slow.set(kind, (this.slow.get(kind) ?? 0) + 1);
  }
}

/** Endless pages; counts how many were read. */
class Endless implements EventStream {
  readonly kind = "mailbox";
  asked = 0;
  end: unknown;

  async next(): Promise<readonly ServerSentEvent[] | undefined> {
    this.asked += 1;
    if (this.end instanceof Error) throw this.end;
    return this.end === undefined ? PAGE : undefined;
  }
}

function setup(stallMs: number): {
  readonly socket: StubbornSocket;
  readonly stream: Endless;
  readonly host: StreamHost & { readonly failures: unknown[]; readonly meter: CountingMeter };
  readonly response: ServerResponse;
  readonly write: (first?: readonly ServerSentEvent[]) => Promise<void>;
} {
  const failures: unknown[] = [];
  const host = {
    meter: new CountingMeter(),
    heartbeatMs: 15_000,
    stallMs,
    failures,
    onFailure: (reason: unknown) => void failures.push(reason),
  };
  const socket = new StubbornSocket();
  const request = Object.assign(new IncomingMessage(socket), { httpVersionMajor: 1, httpVersionMinor: 1 });
  const response = new ServerResponse(request);
  response.assignSocket(socket);
  // As the server does.
  socket.on("drain", () => response.emit("drain"));
  const stream = new Endless();
  const write = (first = PAGE): Promise<void> =>
    writeEvents(beginningWith(first, stream), response, { headers: { vary: "origin" }, host });
  return { socket, stream, host, response, write };
}

describe("writing server-sent events", () => {
  it("reads no further page until the last one has left", async () => {
    const slow = Array.from({ length: 1_000 }, () => setup(60_000));
    const writing = slow.map(({ write }) => write());
    for (let round = 0; round < 5; round += 1) await nextTurn();
    assert.ok(slow.every(({ stream }) => stream.asked === 0));
    for (const { socket, stream } of slow) {
      stream.end = "over";
      socket.takeAll();
    }
    await Promise.all(writing);
    assert.ok(slow.every(({ stream }) => stream.asked === 1));
  });

  it("writes events before it reads the next ones", async () => {
    const { socket, stream, write } = setup(60_000);
    socket.isTaking = true;
    const writtenAtNext: string[] = [];
    stream.next = async (): Promise<undefined> => void writtenAtNext.push(socket.taken.join(""));
    await write([{ id: "7", event: "message", data: '"长"' }]);
    assert.equal(writtenAtNext.length, 1);
    assert.match(writtenAtNext[0] ?? "", /id: 7\nevent: message\ndata: "长"\n\n/);
  });

  it("disconnects a reader that takes nothing for the stall time, and counts it", async () => {
    const { socket, stream, host, response, write } = setup(20);
    const closed = once(response, "close");
    await write();
    await closed;
    assert.deepEqual([stream.asked, socket.destroyed], [0, true]);
    assert.equal(host.meter.slow.get("mailbox"), 1);
    assert.equal(host.meter.open.get("mailbox"), 0);
  });

  it("does not count a reader that disconnects", async () => {
    const { socket, host, write } = setup(60_000);
    const writing = write();
    socket.destroy();
    await writing;
    assert.equal(host.meter.slow.get("mailbox"), undefined);
  });

  it("ends the answer properly when the stream ends or the reader's key expires", async () => {
    for (const end of ["over", new RelayError("unauthenticated", "this key ended")]) {
      const { socket, stream, host, response, write } = setup(60_000);
      stream.end = end;
      socket.isTaking = true;
      const finished = once(response, "finish");
      await write([]);
      await finished;
      const text = socket.taken.join("");
      assert.match(text, /^HTTP\/1\.1 200 OK\r\nvary: origin\r\ncontent-type: text\/event-stream/);
      assert.match(text, /retry: \d+\n\n: heartbeat\n\n/);
      assert.ok(text.endsWith("0\r\n\r\n"));
      assert.deepEqual(host.failures, []);
    }
  });

  it("logs internal errors and hides them from the reader", async () => {
    const { socket, stream, host, write } = setup(60_000);
    stream.end = new TypeError("a secret of the house");
    socket.isTaking = true;
    await write([]);
    assert.deepEqual(host.failures, [stream.end]);
    assert.doesNotMatch(socket.taken.join(""), /secret/);
  });
});
