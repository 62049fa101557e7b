import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

interface WaitOptions {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: Error) => void;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const STATUS_START = "HTTP/1.1 ".length;

/**
 * One keep-alive connection with one request under way. It reads what the contestants answer and no more of
 * HTTP: a status and a body with a Content-Length. That makes it several times cheaper than a real client.
 */
export class Connection implements Disposable {
  readonly #socket: Socket;
  #waiting: WaitOptions | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** How long the answer will be; unknown until its head is complete. */
  #bytesExpected = Number.POSITIVE_INFINITY;
  #headBytes = 0;
  #status = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#read(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed the connection")));
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  request(bytes: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting !== undefined || this.#socket.destroyed)
        throw new Error("the connection is not free");
      this.#waiting = { resolve, reject };
      this.#socket.write(bytes);
    });
  }

  /** Rejects every request that still waits for its answer. */
  hangUp(): void {
    this.#socket.destroy();
  }

  [Symbol.dispose](): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytesExpected === Number.POSITIVE_INFINITY) this.#readHead();
    if (this.#bytes < this.#bytesExpected) return;
    const all = this.#joined();
    const answer = { status: this.#status, body: all.subarray(this.#headBytes, this.#bytesExpected) };
    this.#chunks = [];
    this.#bytes = 0;
    this.#bytesExpected = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(answer);
  }

  #readHead(): void {
    const all = this.#joined();
    const end = all.indexOf(HEAD_END);
    if (end === -1) return;
    const head = all.toString("latin1", 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.#socket.destroy(new Error(`the server answered without a Content-Length: ${head}`));
      return;
    }
    this.#status = Number(head.slice(STATUS_START, STATUS_START + 3));
    this.#headBytes = end + HEAD_END.length;
    this.#bytesExpected = this.#headBytes + Number(length);
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && this.#chunks.length === 1) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }

  #fail(reason: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(reason);
  }
}

export async function openConnections(port: number, count: number): Promise<Connections> {
  const opened = await Promise.all(Array.from({ length: count }, () => Connection.open(port)));
  return Object.assign(opened, {
    [Symbol.dispose]: () => {
      for (const connection of opened) connection[Symbol.dispose]();
    },
  });
}

export type Connections = readonly Connection[] & Disposable;

/** The JSON of an answer that must have succeeded. */
export function jsonOf(answer: Answer): unknown {
  assertOk(answer);
  return JSON.parse(answer.body.toString("utf8"));
}

export function assertOk(answer: Answer): void {
  if (answer.status >= 200 && answer.status < 300) return;
  throw new Error(`a request was answered ${answer.status}: ${answer.body.toString("utf8", 0, 500)}`);
}
