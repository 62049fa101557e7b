import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A server on loopback that can go away and come back at the same address. */
export abstract class LoopbackServer implements AsyncDisposable {
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port as before if it was open before. */
  async open(): Promise<void> {
    const server = this.createServer();
    await new Promise<void>((resolve) => {
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Refuses connections from now on; those that are open break. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    this.breakUpgraded();
    server.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A new one for each time it is opened, not listening yet. */
  protected abstract createServer(): Server;

  /** Breaks the connections that a server no longer knows, because they speak something else than HTTP by now. */
  protected breakUpgraded(): void {}
}
