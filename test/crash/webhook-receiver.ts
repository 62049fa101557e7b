import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { History } from "./history.ts";

/** So that a relay can be killed between a request and its answer. */
const ANSWER_MS = 5;

/** Receives the webhooks of a run and writes each into the history. */
export class WebhookReceiver implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  static async open(history: History): Promise<WebhookReceiver> {
    const server = createServer((request, response) => {
      const messageId = String(request.headers["webhook-id"]);
      history.record(history.begin(), { act: "webhook", messageId });
      setTimeout(() => response.writeHead(204).end(), ANSWER_MS);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new WebhookReceiver(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
