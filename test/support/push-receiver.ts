import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

const ARRIVAL_MS_MAX = 20_000;

export interface PushedRequest {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The very bytes, which the signature is about. */
  readonly body: string;
  readonly atMs: number;
}

/** What the receiver does with the request of this number, counted from 1. */
export type Answering = (response: ServerResponse, number: number, request: PushedRequest) => void;

/** An HTTP server that answers, or does not, as a test says. */
export class PushReceiver implements AsyncDisposable {
  readonly requests: PushedRequest[] = [];
  readonly #server: Server;
  answering: Answering;

  private constructor(answering: Answering) {
    this.answering = answering;
    this.#server = createServer((request, response) => {
      response.on("error", () => undefined);
      buffer(request).then(
        (body) => this.#take(request.url ?? "", request.headers, body, response),
        () => response.destroy(),
      );
    });
  }

  static async open(answering: Answering = with200): Promise<PushReceiver> {
    const receiver = new PushReceiver(answering);
    receiver.#server.listen(0, "127.0.0.1");
    await once(receiver.#server, "listening");
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/收信`;
  }

  get ids(): readonly string[] {
    return this.requests.map(({ id }) => id);
  }

  /** The requests, once there are so many of them. */
  async arrived(count: number): Promise<readonly PushedRequest[]> {
    const signal = AbortSignal.timeout(ARRIVAL_MS_MAX);
    while (this.requests.length < count) await once(this.#server, "taken", { signal });
    return this.requests;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(path: string, headers: IncomingHttpHeaders, body: Buffer, response: ServerResponse): void {
    const id = String(headers["webhook-id"]);
    const request = { id, path, headers, body: body.toString(), atMs: Date.now() };
    this.requests.push(request);
    this.answering(response, this.requests.length, request);
    this.#server.emit("taken");
  }
}

export const with200: Answering = (response) => void response.writeHead(200).end("好");

/** One status after the other, the last again and again. */
export function answers(...statuses: readonly number[]): Answering {
  return (response, number) =>
    void response.writeHead(statuses[number - 1] ?? statuses.at(-1) ?? 200).end(`第 ${number} 次`);
}

/** How many of the signatures this secret made, by the words of the Standard Webhooks specification alone. */
export function signaturesBy(secret: string, { headers, body }: PushedRequest): number {
  assert.match(secret, /^whsec_/);
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signed = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const expected = `v1,${createHmac("sha256", key).update(signed, "utf8").digest("base64")}`;
  return String(headers["webhook-signature"])
    .split(" ")
    .filter((signature) => signature === expected).length;
}
