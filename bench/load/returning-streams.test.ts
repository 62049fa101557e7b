import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { ReturningStreams } from "./returning-streams.ts";
import { SseStream } from "./sse-stream.ts";

const READERS = 5;

describe("streams that come back by themselves", () => {
  it("go on after what they were shown last", async () => {
    await using server = await startServer(() => undefined);
    using streams = await openStreams(server.port);
    server.showAll("17");
    await streams.wereShown(1);
    server.cutOffAll();
    await streams.areOpen(2);
    assert.deepEqual(new Set(server.asked.slice(0, READERS)), new Set(["/mailbox/a/stream"]));
    assert.deepEqual(new Set(server.asked.slice(READERS)), new Set(["/mailbox/a/stream?since=17"]));
  });

  it("come back also from a server that was still away when they tried", async () => {
    let refusals = 0;
    await using server = await startServer((response) => {
      if (server.asked.length <= READERS || refusals === READERS) return;
      refusals += 1;
      response.writeHead(503).end();
    });
    using streams = await openStreams(server.port);
    server.cutOffAll();
    await streams.areOpen(2);
    assert.equal(refusals, READERS);
  });

  it("tell when one of them was shown something twice", async () => {
    await using server = await startServer(() => undefined);
    using streams = await openStreams(server.port);
    server.showAll("1");
    await streams.wereShown(1);
    server.showAll("1");
    await assert.rejects(async () => {
      await streams.wereShown(2);
      await streams.wereShown(1);
    }, /5 streams were shown more than 1 messages/);
  });
});

function openStreams(port: number): Promise<ReturningStreams> {
  const addresses = Array.from({ length: READERS }, () => ({ port, agent: "a", localAddress: undefined }));
  return ReturningStreams.open((address, listener) => new SseStream(address, listener), addresses);
}

/** Streams that are fed by hand. `meet` may refuse one before it is opened. */
async function startServer(meet: (response: ServerResponse) => void) {
  const open = new Set<ServerResponse>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    meet(response);
    if (response.headersSent) return;
    open.add(response);
    response.writeHead(200).write("retry: 1\n\n");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    asked: asked as readonly string[],
    showAll: (cursor: string) => {
      for (const response of open) response.write(`id: ${cursor}\nevent: message\ndata: {}\n\n`);
    },
    cutOffAll: () => {
      for (const response of open) response.destroy();
      open.clear();
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
