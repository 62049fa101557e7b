import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";

/** Both ends of one connection. */
export interface SocketPair extends AsyncDisposable {
  readonly ours: WebSocket;
  readonly theirs: WebSocket;
}

export async function openPair(): Promise<SocketPair> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const theirs = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [ours] = (await once(server, "connection")) as [WebSocket];
  await once(theirs, "open");
  return {
    ours,
    theirs,
    [Symbol.asyncDispose]: async () => {
      theirs.terminate();
      ours.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
