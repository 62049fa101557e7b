import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { type AddressInfo, createServer, connect, isIP, type Server, type Socket } from "node:net";
import { createServer as createTls, type TLSSocket } from "node:tls";
import { EgressPolicy } from "../src/core/rules/egress-policy.ts";
import type { OutboundRequest } from "../src/transports/egress/http-client.ts";
import type { DialTarget } from "../src/transports/egress/checked-connector.ts";
import { GuardedOutbound } from "../src/transports/egress/guarded-outbound.ts";
import type { Certificate } from "./certificate.ts";

/** Addresses that are public, and to which no test ever connects. */
export const PUBLIC_ADDRESS = "93.184.215.14";
export const OTHER_PUBLIC_ADDRESS = "2606:2800:21f:cb07:6820:80da:af6b:8b2c";

/** A name server with the answers of a test: one after the other, then the last one repeatedly. */
export class FakeNames {
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (readonly string[])[]>();

  set(name: string, ...answers: readonly (readonly string[])[]): void {
    this.#answers.set(name, [...answers]);
  }

  readonly resolve = async (name: string): Promise<readonly LookupAddress[]> => {
    this.asked.push(name);
    const answers = this.#answers.get(name);
    const answer = answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0];
    if (answer === undefined) throw Object.assign(new Error(`no such name ${name}`), { code: "ENOTFOUND" });
    return answer.map((address) => ({ address, family: isIP(address) }));
  };
}

/** A server in the outside network; `talk` answers each connection. */
export interface OutsideServer extends AsyncDisposable {
  readonly port: number;
  readonly connections: readonly OutsideConnection[];
  /** Waits for the connection of this number, counted from 0. */
  connection(number: number): Promise<OutsideConnection>;
}

export interface OutsideConnection {
  readonly socket: Socket;
  /** All bytes that arrived. */
  readonly received: () => string;
  readonly closed: Promise<void>;
}

export async function openOutsideServer(talk: (socket: Socket) => void): Promise<OutsideServer> {
  const connections: OutsideConnection[] = [];
  const server: Server = createServer((socket) => {
    const chunks: Buffer[] = [];
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    connections.push({ socket, received: () => Buffer.concat(chunks).toString("latin1"), closed });
    talk(socket);
    server.emit("added");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    connection: async (number) => {
      for (;;) {
        const found = connections[number];
        if (found !== undefined) return found;
        await once(server, "added");
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of connections) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends this text after every complete request. */
export function answering(text: string): (socket: Socket) => void {
  return (socket) => onRequest(socket, () => void socket.write(text));
}

/** Calls back with the head of each request when its body has arrived. */
export function onRequest(socket: Socket, callback: (head: string) => void): void {
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
    const [, head = "", length = "0"] =
      /^([^]*?\r\ncontent-length: (\d+)\r\n[^]*?)\r\n\r\n/.exec(received) ?? [];
    const end = (head === "" ? received.indexOf("\r\n\r\n") : head.length) + 4 + Number(length);
    if (!received.includes("\r\n\r\n") || received.length < end) return;
    callback(received.slice(0, received.indexOf("\r\n\r\n")));
    received = received.slice(end);
  });
}

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** The same over TLS, with this certificate; it answers every request. */
export interface TlsServer extends AsyncDisposable {
  readonly port: number;
  /** The names that clients asked for. */
  readonly names: readonly (string | false | null)[];
  requests(): number;
}

export async function openTlsServer(certificate: Certificate): Promise<TlsServer> {
  const names: (string | false | null)[] = [];
  let requests = 0;
  const sockets = new Set<TLSSocket>();
  const server = createTls(certificate, (socket) => {
    names.push(socket.servername);
    sockets.add(socket);
    socket.on("error", () => {});
    onRequest(socket, () => {
      requests += 1;
      socket.write(OK);
    });
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    names,
    requests: () => requests,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** An outbound client in a network with invented names, where every connection goes to one server. */
export interface OutsideNetwork extends AsyncDisposable {
  readonly names: FakeNames;
  /** The targets of all connections. */
  readonly dialled: DialTarget[];
  readonly outbound: GuardedOutbound;
}

export function openOutsideNetwork(port: number, allowed: readonly string[] = []): OutsideNetwork {
  const names = new FakeNames();
  const dialled: DialTarget[] = [];
  const outbound = new GuardedOutbound({
    policy: new EgressPolicy(allowed),
    resolve: names.resolve,
    dial: (target) => {
      dialled.push(target);
      return connect({ host: "127.0.0.1", port });
    },
  });
  return { names, dialled, outbound, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
}

/** An ordinary request. */
export function requestTo(url: string, options: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    url,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ 你好: "知微" }),
    timeoutMs: 5_000,
    answerBytesMax: 1_024,
    ...options,
  };
}
