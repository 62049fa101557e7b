import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, Socket } from "node:net";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type Certificate, selfSigned } from "../../../testing/certificate.ts";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import {
  answering,
  FakeNames,
  OK,
  onRequest,
  openOutsideNetwork,
  openOutsideServer,
  openTlsServer,
  PUBLIC_ADDRESS,
  requestTo,
} from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

const policy = new EgressPolicy(["127.0.0.0/8"]);
const HEAD = "HTTP/1.1 200 OK\r\n";

/** Says the text bit by bit, and its last bit for ever. */
function dripping(start: string, drop: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => socket.write(drop), 5);
    socket.on("close", () => clearInterval(timer));
  };
}

/** Says the text again and again, as fast as it is read. */
function pouring(start: string, piece: string): (socket: Socket) => void {
  return (socket) => {
    const pour = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", pour);
    onRequest(socket, () => {
      socket.write(start);
      pour();
    });
  };
}

describe("an answer that does not end", () => {
  const slow: readonly (readonly [what: string, talk: (socket: Socket) => void])[] = [
    ["that never begins", () => {}],
    ["whose status line never ends", dripping("HTTP/1.1 200 ", "O")],
    ["whose headers come one byte at a time", dripping(`${HEAD}x-a: `, "b")],
    ["whose headers never end, each of them whole", dripping(HEAD, "a: b\r\n")],
    ["whose body comes one byte at a time", dripping(`${HEAD}content-length: 1000\r\n\r\n`, "x")],
    ["whose body is shorter than it says", dripping(`${HEAD}content-length: 9\r\n\r\nx`, "")],
    [
      "whose pieces come one byte at a time",
      dripping(`${HEAD}transfer-encoding: chunked\r\n\r\n`, "1\r\nx\r\n"),
    ],
    ["whose piece has a name without end", dripping(`${HEAD}transfer-encoding: chunked\r\n\r\n1;`, "x")],
    ["whose trailers never end", dripping(`${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n`, "a: b\r\n")],
  ];
  for (const [what, talk] of slow) {
    it(`is waited for no longer than the request says: one ${what}`, async () => {
      await using server = await openOutsideServer(talk);
      await using outbound = new GuardedOutbound({ policy });
      const startedMs = performance.now();
      const request = requestTo(`http://127.0.0.1:${server.port}/`, { timeoutMs: 200 });
      await outboundFailure(outbound.request(request), "timeout", /within 200 ms$/);
      assert.ok(performance.now() - startedMs < 2_000);
      await (
        await server.connection(0)
      ).closed;
    });
  }

  it("is read to its limit, and the connection is closed", async () => {
    for (const start of ["", "content-length: 100000000\r\n"]) {
      await using server = await openOutsideServer(pouring(`${HEAD}${start}\r\n`, "知".repeat(10_000)));
      await using outbound = new GuardedOutbound({ policy });
      const answer = await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
      assert.equal(answer.status, 200);
      // 341 characters of three bytes each, and no half of one.
      assert.equal(answer.text, "知".repeat(341));
      await server.connections[0]?.closed;
    }
  });

  it("leaves the connection to the next request when it is just as long as it may be", async () => {
    await using server = await openOutsideServer(answering(`${HEAD}content-length: 4\r\n\r\nfour`));
    await using outbound = new GuardedOutbound({ policy });
    const request = requestTo(`http://127.0.0.1:${server.port}/`, { answerBytesMax: 4 });
    for (let count = 0; count < 2; count += 1) {
      assert.equal((await outbound.request(request)).text, "four");
      await nextTurn();
    }
    assert.equal(server.connections.length, 1);
    assert.equal((await outbound.request({ ...request, answerBytesMax: 3 })).text, "fou");
    await server.connections[0]?.closed;
    assert.equal((await outbound.request({ ...request, answerBytesMax: 0 })).text, "");
  });

  it("has headers of a bounded size", async () => {
    for (const piece of ["\r\nx-a: b".repeat(100), "b".repeat(1_000)]) {
      await using server = await openOutsideServer(pouring(`${HEAD}x-a: `, piece));
      await using outbound = new GuardedOutbound({ policy });
      const request = requestTo(`http://127.0.0.1:${server.port}/`);
      await outboundFailure(outbound.request(request), "protocol", /UND_ERR_HEADERS_OVERFLOW/);
      await server.connections[0]?.closed;
    }
  });
});

describe("an answer that is none", () => {
  it("is announced only so often", async () => {
    await using server = await openOutsideServer(dripping("", "HTTP/1.1 102 Processing\r\n\r\n"));
    await using outbound = new GuardedOutbound({ policy });
    const request = requestTo(`http://127.0.0.1:${server.port}/`);
    await outboundFailure(outbound.request(request), "protocol", /again and again$/);
    await server.connections[0]?.closed;
  });

  const bad: readonly (readonly [what: string, text: string])[] = [
    ["that is not HTTP", "220 mail.example ESMTP ready\r\n"],
    ["of another version", "HTTP/9.9 200 OK\r\n\r\n"],
    ["without a status", "HTTP/1.1 OK\r\n\r\n"],
    ["with two lengths", `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nxx`],
    ["with a length and pieces", `${HEAD}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["with a NUL in a header", `${HEAD}x-a: \0\r\n\r\n`],
    [
      "that speaks another protocol from here on",
      "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ],
  ];
  for (const [what, text] of bad) {
    it(`is told as such: one ${what}`, async () => {
      await using server = await openOutsideServer(answering(text));
      await using outbound = new GuardedOutbound({ policy });
      const request = requestTo(`http://127.0.0.1:${server.port}/`);
      await outboundFailure(
        outbound.request(request),
        "protocol",
        /^"127\.0\.0\.1:\d+" gave no whole HTTP answer/,
      );
    });
  }

  for (const text of ["", HEAD, `${HEAD}content-length: 9\r\n\r\nx`]) {
    it(`is told as such: one that breaks off after ${JSON.stringify(text)}`, async () => {
      await using server = await openOutsideServer((socket) => onRequest(socket, () => socket.end(text)));
      await using outbound = new GuardedOutbound({ policy });
      await outboundFailure(outbound.request(requestTo(`http://127.0.0.1:${server.port}/`)), "protocol");
    });
  }

  it("may be text in no encoding that we know", async () => {
    await using server = await openOutsideServer((socket) =>
      onRequest(socket, () => socket.write(Buffer.from(`${HEAD}content-length: 3\r\n\r\na\xff!`, "latin1"))),
    );
    await using outbound = new GuardedOutbound({ policy });
    const { text } = await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
    assert.equal(text, "a\u{fffd}!");
  });

  it("does not answer the next request: what nobody asked for is thrown away", async () => {
    const forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
    await using server = await openOutsideServer(answering(OK));
    await using outbound = new GuardedOutbound({ policy });
    const url = `http://127.0.0.1:${server.port}/`;
    await outbound.request(requestTo(url));
    const [first] = server.connections;
    first?.socket.write(forged);
    await first?.closed;
    assert.equal((await outbound.request(requestTo(url))).text, "ok");
  });
});

describe("no connection", () => {
  it("is unreachable where nobody listens, and says no address of a name", async () => {
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

  it("is a matter of time for a name that nobody answers for", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    await using outbound = new GuardedOutbound({ policy, resolve: () => never });
    const request = requestTo("http://slow.example/", { timeoutMs: 50 });
    await outboundFailure(outbound.request(request), "timeout", /within 50 ms$/);
  });

  it("is a matter of time for a machine that says nothing", async () => {
    await using outbound = new GuardedOutbound({ policy, dial: () => new Socket() });
    const request = requestTo("http://127.0.0.1/", { timeoutMs: 50 });
    await outboundFailure(outbound.request(request), "timeout", /within 50 ms$/);
  });
});

describe("TLS", () => {
  const certificate = selfSigned("hooks.example");

  it("must be vouched for", async () => {
    await using server = await openTlsServer(certificate);
    await using network = openOutsideNetwork(server.port);
    network.names.set("hooks.example", [PUBLIC_ADDRESS]);
    const request = requestTo("https://hooks.example/");
    await outboundFailure(network.outbound.request(request), "tls", /\(DEPTH_ZERO_SELF_SIGNED_CERT\)$/);
    assert.deepEqual([network.dialled[0]?.port, server.requests()], [443, 0]);
  });

  it("is spoken with the name, over the address that was checked", async () => {
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

  it("must be vouched for under the name that was called", async () => {
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

  it("is not what a server speaks that talks plain HTTP", async () => {
    await using server = await openOutsideServer((socket) => socket.on("data", () => socket.end(OK)));
    await using outbound = new GuardedOutbound({ policy });
    await outboundFailure(outbound.request(requestTo(`https://127.0.0.1:${server.port}/`)), "tls");
    assert.ok(!server.connections[0]?.received().includes("POST"));
  });

  it("is waited for no longer than the request says", async () => {
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

/** Certificates of this process are the same for all of it, so that they are put back. */
function trusting({ cert }: Certificate): Disposable {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, cert]);
  return { [Symbol.dispose]: () => setDefaultCACertificates(before) };
}
