import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";

/** A line to a relay that stays at one address, also when the relay moves, and can be cut by a test. */
export class BreakableLine implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Settled while bytes may pass. */
  #open: Promise<void> = Promise.resolve();

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

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #connect(near: Socket, { hostname, port }: URL): void {
    const far = connect({ host: hostname, port: Number(port) });
    this.#keep(near);
    this.#keep(far);
    near.pipe(this.#gate()).pipe(far).pipe(this.#gate()).pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #gate(): Duplex {
    const opened = (): Promise<void> => this.#open;
    return Duplex.from(async function* pass(source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        await opened();
        yield chunk;
      }
    });
  }
}
