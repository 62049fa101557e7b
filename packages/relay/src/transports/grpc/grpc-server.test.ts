import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { A2aHandler } from "../a2a/a2a-handler.ts";
import { KeyAuthenticator } from "../../core/access/authenticator.ts";
import { coreOnMemory } from "../../../testing/core-on-memory.ts";
import { Gateway } from "../gateway/gateway.ts";
import { type GrpcServerSettings, startGrpc } from "./grpc-server.ts";

const WAIT_MS_MAX = 10_000;
const SETTINGS: GrpcServerSettings = { host: "127.0.0.1", port: 0, streamStallMs: 1_000, drainMs: 1_000 };

async function setup(settings: Partial<GrpcServerSettings> = {}) {
  const stack = new AsyncDisposableStack();
  const core = stack.use(await coreOnMemory());
  const parts = {
    handler: new A2aHandler(core),
    gateway: new Gateway({ ...core, authenticator: new KeyAuthenticator(core, { apiKey: undefined }) }),
    log: { error: (about: object): void => assert.fail(JSON.stringify(about)) },
  };
  const grpc = stack.use(await startGrpc(parts, { ...SETTINGS, ...settings }));
  return {
    port: grpc.port,
    parts,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A connection that sends nothing, after the relay has sent its settings. */
async function openSilent(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "data", { signal: AbortSignal.timeout(WAIT_MS_MAX) });
  return socket;
}

function closed(socket: Socket): Promise<unknown> {
  return once(socket.resume(), "close", { signal: AbortSignal.timeout(WAIT_MS_MAX) });
}

describe("gRPC", () => {
  it("takes so many connections, and the next when one has closed", async () => {
    await using grpc = await setup({ connectionsMax: 2 });
    const [first, second] = [await openSilent(grpc.port), await openSilent(grpc.port)];
    await closed(connect(grpc.port, "127.0.0.1"));
    const left = closed(first);
    first.end();
    await left;
    const next = await openSilent(grpc.port);
    for (const socket of [second, next]) socket.destroy();
  });

  it("takes no more calls of one connection at a time than it says", async () => {
    await using grpc = await setup();
    const session = connectHttp2(`http://127.0.0.1:${grpc.port}`);
    const signal = AbortSignal.timeout(WAIT_MS_MAX);
    const [settings] = (await once(session, "remoteSettings", { signal })) as [
      { readonly maxConcurrentStreams: number },
    ];
    session.destroy();
    assert.equal(settings.maxConcurrentStreams, LIMITS.grpcCallsOfConnectionMax);
  });

  it("closes idle connections", async () => {
    await using grpc = await setup({ idleMs: 50 });
    await closed(await openSilent(grpc.port));
  });

  it("frees its port when it stops, also with silent connections open", async () => {
    let port: number;
    let cutOff: Promise<unknown>;
    {
      await using grpc = await setup();
      ({ port } = grpc);
      cutOff = closed(await openSilent(port));
    }
    await cutOff;
    await using again = await setup({ port });
    assert.equal(again.port, port);
  });

  it("names the address it could not listen on, and what to do", async () => {
    await using grpc = await setup();
    await assert.rejects(startGrpc(grpc.parts, { ...SETTINGS, port: grpc.port }), (reason) => {
      assert.ok(reason instanceof RelayError);
      assert.match(reason.message, new RegExp(`127.0.0.1:${grpc.port}: .*EADDRINUSE.*--grpc-port`));
      return true;
    });
  });
});
