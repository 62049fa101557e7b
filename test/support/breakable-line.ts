import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A line to a relay that stays at one address, also when the relay moves, and can be cut by a test. */
export class BreakableLine implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server;
    this.#sockets = sockets;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `target` is asked for each connection. */
  static async open(target: () => string): Promise<BreakableLine> {
    const sockets = new Set<Socket>();
    const keep = (socket: Socket): void => {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    };
    const server = createServer((near) => {
      const { hostname, port } = new URL(target());
      const far = connect({ host: hostname, port: Number(port) });
      keep(near);
      keep(far);
      near.pipe(far).pipe(near);
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new BreakableLine(server, sockets);
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
}
