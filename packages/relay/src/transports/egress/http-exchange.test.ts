import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import { answering, OK, onRequest, openOutsideServer, requestTo } from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

const policy = new EgressPolicy(["127.0.0.0/8"]);
const HEAD = "HTTP/1.1 200 OK\r\n";

/** Sends `start`, then `drop` every 5 ms. */
function dripping(start: string, drop: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => socket.write(drop), 5);
    socket.on("close", () => clearInterval(timer));
  };
}

/** Sends `piece` repeatedly, as fast as it is read. */
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
    it(`times out as the request says: one ${what}`, async () => {
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

  it("of exactly the longest length leaves the connection to the next request", async () => {
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

describe("an invalid answer", () => {
  it("has a bounded number of informational answers before it", async () => {
    await using server = await openOutsideServer(dripping("", "HTTP/1.1 102 Processing\r\n\r\n"));
    await using outbound = new GuardedOutbound({ policy });
    const request = requestTo(`http://127.0.0.1:${server.port}/`);
    await outboundFailure(outbound.request(request), "protocol", /again and again$/);
    await server.connections[0]?.closed;
  });

  const bad: readonly (readonly [what: string, text: string])[] = [
    ["that is not HTTP", "220 smtp.example ESMTP ready\r\n"],
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
    it(`is refused: one ${what}`, async () => {
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
    it(`is refused: one that breaks off after ${JSON.stringify(text)}`, async () => {
      await using server = await openOutsideServer((socket) => onRequest(socket, () => socket.end(text)));
      await using outbound = new GuardedOutbound({ policy });
      await outboundFailure(outbound.request(requestTo(`http://127.0.0.1:${server.port}/`)), "protocol");
    });
  }

  it("may contain bytes that are not UTF-8", async () => {
    await using server = await openOutsideServer((socket) =>
      onRequest(socket, () => socket.write(Buffer.from(`${HEAD}content-length: 3\r\n\r\na\xff!`, "latin1"))),
    );
    await using outbound = new GuardedOutbound({ policy });
    const { text } = await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
    assert.equal(text, "a\u{fffd}!");
  });

  it("that was not requested is discarded, and does not answer the next request", async () => {
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

describe("a request without an answer", () => {
  it("has not arrived where there was no connection", async () => {
    await using outbound = new GuardedOutbound({ policy });
    for (const [url, code] of [
      ["http://127.0.0.1:1/", "unreachable"],
      ["http://10.0.0.1/", "blocked"],
    ] as const) {
      assert.equal((await outboundFailure(outbound.request(requestTo(url)), code)).mayHaveArrived, false);
    }
  });

  it("has not arrived where the connection took too long or the caller gave up", async () => {
    // A name server that never answers.
    await using outbound = new GuardedOutbound({ policy, resolve: () => new Promise(() => {}) });
    const late = outbound.request(requestTo("http://slow.example/", { timeoutMs: 50 }));
    assert.equal((await outboundFailure(late, "timeout")).mayHaveArrived, false);
    const stopping = new AbortController();
    const stopped = outbound.request(requestTo("http://slow.example/", { signal: stopping.signal }));
    stopping.abort();
    assert.equal((await outboundFailure(stopped, "aborted")).mayHaveArrived, false);
  });

  it("may have arrived where the server hangs up or is silent, or the caller gives up", async () => {
    await using outbound = new GuardedOutbound({ policy });
    {
      await using server = await openOutsideServer((socket) => onRequest(socket, () => socket.destroy()));
      const broken = outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
      assert.equal((await outboundFailure(broken, "protocol")).mayHaveArrived, true);
    }
    const stopping = new AbortController();
    await using server = await openOutsideServer((socket) => onRequest(socket, () => stopping.abort()));
    const url = `http://127.0.0.1:${server.port}/`;
    const given = outbound.request(requestTo(url, { signal: stopping.signal }));
    assert.equal((await outboundFailure(given, "aborted")).mayHaveArrived, true);
    const silent = outbound.request(requestTo(url, { timeoutMs: 100 }));
    assert.equal((await outboundFailure(silent, "timeout")).mayHaveArrived, true);
  });
});
