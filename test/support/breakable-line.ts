import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";

interface PlannedBreak {
  readonly text: string;
  readonly when: "before" | "answered" | "silent";
}

interface Passage {
  readonly closed: Promise<unknown>;
  isAnswerLost: boolean;
  isSilent: boolean;
}

/** A line to a relay that stays at one address, also when the relay moves, and can be cut by a test. */
export class BreakableLine implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #passages = new Set<Passage>();
  /** Settled while bytes may pass. */
  #open: Promise<void> = Promise.resolve();
  #planned: PlannedBreak | undefined;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `target` is asked for each connection. */
  static async open(target: () => string): Promise<BreakableLine> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const line = new BreakableLine(server);
    server.on("connection", (near) => line.#connect(near, new URL(target())));
    return line;
  }

  /** Bytes wait, and connections stay, until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#open = promise;
    return resolve;
  }

  /** Drops connections without a FIN, as a pulled cable does. New connections are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /**
   * Connections stay open but carry nothing any more, as when a machine vanishes. New ones work. Resolves when the near
   * side has closed all of them.
   */
  async silence(): Promise<void> {
    await Promise.all(
      Array.from(this.#passages, (passage) => {
        passage.isSilent = true;
        return passage.closed;
      }),
    );
  }

  /**
   * Breaks the next connection that sends this text: before it reaches the other side, or when that has answered, or
   * it falls silent.
   */
  breakAt(text: string, when: PlannedBreak["when"]): void {
    this.#planned = { text, when };
  }

  /** Whether the break is still to come. */
  get isBreakPlanned(): boolean {
    return this.#planned !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #connect(near: Socket, { hostname, port }: URL): void {
    const far = connect({ host: hostname, port: Number(port) });
    this.#keep(near);
    this.#keep(far);
    const passage: Passage = {
      closed: new Promise((resolve) => near.once("close", resolve)),
      isAnswerLost: false,
      isSilent: false,
    };
    this.#passages.add(passage);
    near.on("close", () => this.#passages.delete(passage));
    const toFar = this.#gate((chunk) => this.#maySend(chunk, passage, near));
    const toNear = this.#gate(() => !passage.isSilent && (!passage.isAnswerLost || this.#reset(near)));
    near.pipe(toFar).pipe(far).pipe(toNear).pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #maySend(chunk: Buffer, passage: Passage, near: Socket): boolean {
    if (this.#planned !== undefined && chunk.includes(this.#planned.text)) {
      const { when } = this.#planned;
      this.#planned = undefined;
      if (when === "before") return this.#reset(near);
      passage.isAnswerLost = when === "answered";
      passage.isSilent = when === "silent";
    }
    return !passage.isSilent;
  }

  #reset(socket: Socket): false {
    socket.resetAndDestroy();
    return false;
  }

  #gate(passes: (chunk: Buffer) => boolean): Duplex {
    const opened = (): Promise<void> => this.#open;
    return Duplex.from(async function* pass(source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        await opened();
        if (passes(chunk)) yield chunk;
      }
    });
  }
}
