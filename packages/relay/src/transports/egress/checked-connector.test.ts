import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, Socket } from "node:net";
import { describe, it } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type Certificate, selfSigned } from "../../../testing/certificate.ts";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import {
  FakeNames,
  OK,
  openOutsideNetwork,
  openOutsideServer,
  openTlsServer,
  PUBLIC_ADDRESS,
  requestTo,
} from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

const policy = new EgressPolicy(["127.0.0.0/8"]);

describe("no connection", () => {
  it("is unreachable on a closed port, and does not reveal the address of a name", async () => {
    const port = await freePort();
    const names = new FakeNames();
    names.set("inside.invalid", ["127.0.0.1"]);
    await using outbound = new GuardedOutbound({ policy, resolve: names.resolve });
    const failure = await outboundFailure(
      outbound.request(requestTo(`http://inside.invalid:${port}/`)),
      "unreachable",
    );
    assert.equal(failure.message, 'no connection to "inside.invalid" (ECONNREFUSED)');
  });

  it("is unreachable for a name that does not exist", async () => {
    await using network = openOutsideNetwork(9);
    const request = requestTo("http://nowhere.example/");
    await outboundFailure(
      network.outbound.request(request),
      "unreachable",
      /^no connection to .* \(ENOTFOUND\)$/,
    );
  });

  it("is unreachable for a name without any address", async () => {
    await using network = openOutsideNetwork(9);
    network.names.set("empty.example", []);
    await outboundFailure(network.outbound.request(requestTo("http://empty.example/")), "unreachable");
  });

  it("times out for a name whose name server is silent", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    await using outbound = new GuardedOutbound({ policy, resolve: () => never });
    const request = requestTo("http://slow.example/", { timeoutMs: 50 });
    await outboundFailure(outbound.request(request), "timeout", /within 50 ms$/);
  });

  it("times out for a silent machine", async () => {
    await using outbound = new GuardedOutbound({ policy, dial: () => new Socket() });
    const request = requestTo("http://127.0.0.1/", { timeoutMs: 50 });
    await outboundFailure(outbound.request(request), "timeout", /within 50 ms$/);
  });

  it("ends after ten seconds for a name whose name server is silent, whatever the request allows", async (context) => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<AbortSignal>();
    const { promise: nothing } = Promise.withResolvers<never>();
    context.mock.timers.enable({ apis: ["setTimeout"] });
    await using outbound = new GuardedOutbound({
      policy: new EgressPolicy([]),
      resolve: (_name, signal) => {
        ask(signal);
        return nothing;
      },
    });
    const request = requestTo("http://silent.example/", { timeoutMs: 60_000 });
    const failed = outboundFailure(outbound.request(request), "timeout", /within 10000 ms$/);
    const signal = await asked;
    context.mock.timers.tick(10_000);
    await failed;
    assert.equal(signal.aborted, true);
  });

  it("ends after ten seconds for a silent machine, whatever the request allows", async (context) => {
    const socket = new Socket();
    const { promise: dialled, resolve } = Promise.withResolvers<void>();
    context.mock.timers.enable({ apis: ["setTimeout"] });
    await using outbound = new GuardedOutbound({
      policy: new EgressPolicy(["127.0.0.0/8"]),
      dial: () => {
        setImmediate(resolve);
        return socket;
      },
    });
    const request = requestTo("http://127.0.0.1/", { timeoutMs: 60_000 });
    const failed = outboundFailure(outbound.request(request), "timeout", /within 10000 ms$/);
    await dialled;
    context.mock.timers.tick(10_000);
    await failed;
    assert.equal(socket.destroyed, true);
  });
});

describe("TLS", () => {
  const certificate = selfSigned("hooks.example");

  it("needs a trusted certificate", async () => {
    await using server = await openTlsServer(certificate);
    await using network = openOutsideNetwork(server.port);
    network.names.set("hooks.example", [PUBLIC_ADDRESS]);
    const request = requestTo("https://hooks.example/");
    await outboundFailure(network.outbound.request(request), "tls", /\(DEPTH_ZERO_SELF_SIGNED_CERT\)$/);
    assert.deepEqual([network.dialled[0]?.port, server.requests()], [443, 0]);
  });

  it("sends the name, over the address that was checked", async () => {
    using _trust = trusting(certificate);
    await using server = await openTlsServer(certificate);
    await using network = openOutsideNetwork(server.port);
    network.names.set("hooks.example.", [PUBLIC_ADDRESS]);
    network.names.set("hooks.example", [PUBLIC_ADDRESS]);
    for (const host of ["hooks.example", "hooks.example."]) {
      assert.equal((await network.outbound.request(requestTo(`https://${host}/`))).text, "ok");
    }
    assert.deepEqual(server.names, ["hooks.example", "hooks.example"]);
    await network.outbound.request(requestTo("https://hooks.example/"));
    assert.equal(network.dialled.length, 2);
  });

  it("needs a certificate for the name that was called", async () => {
    using _trust = trusting(certificate);
    await using server = await openTlsServer(certificate);
    await using network = openOutsideNetwork(server.port);
    network.names.set("other.example", [PUBLIC_ADDRESS]);
    for (const host of ["other.example", PUBLIC_ADDRESS]) {
      const request = requestTo(`https://${host}/`);
      await outboundFailure(network.outbound.request(request), "tls", /\(ERR_TLS_CERT_ALTNAME_INVALID\)$/);
    }
    assert.equal(server.requests(), 0);
  });

  it("fails with a server that speaks plain HTTP", async () => {
    await using server = await openOutsideServer((socket) => socket.on("data", () => socket.end(OK)));
    await using outbound = new GuardedOutbound({ policy });
    await outboundFailure(outbound.request(requestTo(`https://127.0.0.1:${server.port}/`)), "tls");
    assert.ok(!server.connections[0]?.received().includes("POST"));
  });

  it("times out as the request says", async () => {
    await using server = await openOutsideServer(() => {});
    await using outbound = new GuardedOutbound({ policy });
    const request = requestTo(`https://127.0.0.1:${server.port}/`, { timeoutMs: 100 });
    await outboundFailure(outbound.request(request), "timeout");
    await outbound[Symbol.asyncDispose]();
    await (
      await server.connection(0)
    ).closed;
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Restores the trusted certificates, which the whole process shares. */
function trusting({ cert }: Certificate): Disposable {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, cert]);
  return { [Symbol.dispose]: () => setDefaultCACertificates(before) };
}
