import { type Answer, Connection, openConnections } from "./connection.ts";

/** Connections for requests that do not wait for each other: each takes one that is free, or a new one. */
export class IdleConnections implements Disposable {
  readonly #port: number;
  readonly #all: Connection[];
  readonly #idle: Connection[];

  private constructor(port: number, connections: readonly Connection[]) {
    this.#port = port;
    this.#all = [...connections];
    this.#idle = [...connections];
  }

  static async open(port: number, count: number): Promise<IdleConnections> {
    return new IdleConnections(port, await openConnections(port, count));
  }

  async request(bytes: Buffer): Promise<Answer> {
    const connection = this.#idle.pop() ?? (await this.#openAnother());
    const answer = await connection.request(bytes);
    this.#idle.push(connection);
    return answer;
  }

  [Symbol.dispose](): void {
    for (const connection of this.#all) connection[Symbol.dispose]();
  }

  async #openAnother(): Promise<Connection> {
    const connection = await Connection.open(this.#port);
    this.#all.push(connection);
    return connection;
  }
}
