import { createServer, type IncomingMessage, type Server } from "node:http";
import { SOCKET_PROTOCOL, type SocketFrame, type SocketRequest } from "@a2a-relay/protocol";
import { type WebSocket, WebSocketServer } from "ws";
import { LoopbackServer } from "./loopback-server.ts";

/** A request of a client over a socket. */
export interface WireAsk extends SocketRequest {
  readonly socket: WireConnection;
}

/** One socket of one client, as the test sees it. */
export interface WireConnection {
  /** Its address, with the query. */
  readonly url: URL;
  /** The subprotocols that were offered. */
  readonly protocols: readonly string[];
  /** Neither side has said goodbye, as far as this one knows. */
  readonly isOpen: boolean;
  say(frame: SocketFrame): void;
  /** Says goodbye with the code. */
  close(code: number, reason?: string): void;
  /** The connection ends without a word. */
  reset(): void;
}

export interface WireSocketScript {
  /** Says what a new socket is greeted with. */
  readonly onOpen?: (socket: WireConnection) => void;
  /** Answers, or does not. */
  readonly onAsk?: (ask: WireAsk) => void;
  /** Refuses the socket with this status. */
  readonly refuse?: () => number | undefined;
  /** Answers plain requests. */
  readonly onHttp?: () => { readonly status: number; readonly json: unknown };
}

/** A real WebSocket server on loopback whose every frame is up to the test. */
export class WireSocket extends LoopbackServer {
  /** Sockets so far, oldest first. */
  readonly sockets: WireConnection[] = [];
  readonly asked: WireAsk[] = [];
  readonly #script: WireSocketScript;
  readonly #wss = new WebSocketServer({ noServer: true, handleProtocols: () => SOCKET_PROTOCOL });

  private constructor(script: WireSocketScript) {
    super();
    this.#script = script;
  }

  static async start(script: WireSocketScript): Promise<WireSocket> {
    const wire = new WireSocket(script);
    await wire.open();
    return wire;
  }

  protected override createServer(): Server {
    const { onHttp = () => ({ status: 200, json: { messages: [], cursor: "0" } }) } = this.#script;
    const server = createServer((_, response) => {
      const { status, json } = onHttp();
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
    });
    server.on("upgrade", (request, socket, head) => {
      const status = this.#script.refuse?.();
      if (status !== undefined) {
        socket.end(`HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
        return;
      }
      this.#wss.handleUpgrade(request, socket, head, (accepted) => this.#serve(accepted, request));
    });
    return server;
  }

  protected override breakUpgraded(): void {
    for (const socket of this.#wss.clients) socket.terminate();
  }

  #serve(socket: WebSocket, request: IncomingMessage): void {
    const connection: WireConnection = {
      url: new URL(request.url ?? "/", this.url),
      protocols: (request.headers["sec-websocket-protocol"] ?? "").split(", "),
      get isOpen() {
        return socket.readyState === socket.OPEN;
      },
      say: (frame) => socket.send(JSON.stringify(frame)),
      close: (code, reason) => socket.close(code, reason),
      reset: () => socket.terminate(),
    };
    this.sockets.push(connection);
    socket.on("message", (data: Buffer) => {
      const ask = { ...(JSON.parse(data.toString()) as SocketRequest), socket: connection };
      this.asked.push(ask);
      this.#script.onAsk?.(ask);
    });
    this.#script.onOpen?.(connection);
  }
}
