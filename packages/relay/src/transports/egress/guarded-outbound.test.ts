import assert from "node:assert/strict";
import { once } from "node:events";
import { Socket } from "node:net";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HOSTILE_ADDRESSES, HOSTILE_FORMS } from "../../../testing/hostile-urls.ts";
import {
  answering,
  FakeNames,
  OK,
  onRequest,
  openOutsideNetwork,
  openOutsideServer,
  OTHER_PUBLIC_ADDRESS,
  PUBLIC_ADDRESS,
  requestTo,
} from "../../../testing/outside-network.ts";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

const LOOPBACK = ["127.0.0.0/8"];
const policy = new EgressPolicy(LOOPBACK);

/** The same for every address: who chooses a name must not learn where it leads. */
const BLOCKED =
  '"hooks.example" is at an address that the relay does not call; the operator of the relay may allow it by its CIDR with A2A_RELAY_EGRESS_ALLOW, such as 10.0.0.0/8';

describe("a request to the outside", () => {
  it("carries its method, path, headers and body, and brings back status, headers and text", async () => {
    await using server = await openOutsideServer(
      answering(
        "HTTP/1.1 202 Accepted\r\nRetry-After: 7\r\nX-Two: a\r\nx-two: b\r\ncontent-length: 6\r\n\r\n收到",
      ),
    );
    await using outbound = new GuardedOutbound({ policy });
    const answer = await outbound.request(
      requestTo(`http://127.0.0.1:${server.port}/a//b?c=%0d%0a&d=知`, { headers: { "Webhook-Id": "msg_1" } }),
    );
    assert.equal(answer.status, 202);
    assert.equal(answer.text, "收到");
    assert.deepEqual([answer.headers["retry-after"], answer.headers["x-two"]], ["7", "a"]);
    const [head = "", body = ""] = (server.connections[0]?.received() ?? "").split("\r\n\r\n");
    const [line, ...headers] = head.split("\r\n");
    assert.equal(line, "POST /a//b?c=%0d%0a&d=%E7%9F%A5 HTTP/1.1");
    assert.deepEqual(headers.toSorted(), [
      "Webhook-Id: msg_1",
      "connection: keep-alive",
      "content-length: 19",
      `host: 127.0.0.1:${server.port}`,
    ]);
    assert.equal(Buffer.from(body, "latin1").toString(), '{"你好":"知微"}');
  });

  it("may be a GET without a body", async () => {
    await using server = await openOutsideServer(answering(OK));
    await using outbound = new GuardedOutbound({ policy });
    const { url, timeoutMs, answerBytesMax } = requestTo(`http://127.0.0.1:${server.port}/`);
    const answer = await outbound.request({ url, method: "GET", headers: {}, timeoutMs, answerBytesMax });
    assert.deepEqual([answer.status, answer.text], [200, "ok"]);
    assert.match(server.connections[0]?.received() ?? "", /^GET \/ HTTP\/1\.1\r\n/);
  });

  it("takes any status for an answer, and waits for the one that is final", async () => {
    for (const status of [201, 204, 301, 400, 410, 429, 500, 599]) {
      const final = `HTTP/1.1 ${status} X\r\n${status === 204 ? "" : "content-length: 0\r\n"}\r\n`;
      await using server = await openOutsideServer(
        answering(`HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${final}`),
      );
      await using outbound = new GuardedOutbound({ policy });
      const answer = await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
      assert.deepEqual([answer.status, answer.text, answer.headers["link"]], [status, "", undefined]);
    }
  });

  it("follows no redirect: where it points to hears nothing", async () => {
    await using inside = await openOutsideServer(answering(OK));
    for (const status of [301, 302, 303, 307, 308]) {
      const location = `http://127.0.0.1:${inside.port}/admin`;
      const redirect = `HTTP/1.1 ${status} X\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`;
      await using server = await openOutsideServer(answering(redirect));
      await using outbound = new GuardedOutbound({ policy });
      const answer = await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
      assert.deepEqual([answer.status, answer.headers["location"]], [status, location]);
    }
    assert.equal(inside.connections.length, 0);
  });

  it("uses a connection again, and opens more where requests are made at the same time", async () => {
    await using server = await openOutsideServer(answering(OK));
    await using outbound = new GuardedOutbound({ policy });
    const url = `http://127.0.0.1:${server.port}/`;
    for (let count = 0; count < 3; count += 1) {
      await outbound.request(requestTo(url));
      // A connection is free again when the server had a turn to close it.
      await nextTurn();
    }
    assert.equal(server.connections.length, 1);
    await Promise.all([outbound.request(requestTo(url)), outbound.request(requestTo(url))]);
    assert.equal(server.connections.length, 2);
  });

  it("is finished though its origin gave way to many others", async () => {
    const { promise: slow, resolve: hurry } = Promise.withResolvers<void>();
    await using server = await openOutsideServer((socket) => {
      onRequest(socket, (head) => {
        const answer = (): void => void socket.write(OK);
        if (head.includes("host: n0.example")) void slow.then(answer);
        else answer();
      });
    });
    await using network = openOutsideNetwork(server.port);
    const hosts = Array.from({ length: 300 }, (_, index) => `n${index}.example`);
    for (const host of hosts) network.names.set(host, [PUBLIC_ADDRESS]);
    const [first = "", ...others] = hosts;
    const early = network.outbound.request(requestTo(`http://${first}/`));
    for (const host of others) await network.outbound.request(requestTo(`http://${host}/`));
    assert.equal(server.connections[0]?.socket.destroyed, false);
    hurry();
    assert.equal((await early).text, "ok");
  });
});

describe("what may be called", () => {
  for (const { url, why } of [...HOSTILE_ADDRESSES, ...HOSTILE_FORMS]) {
    it(`is not ${JSON.stringify(url)}: ${why}`, async () => {
      await using network = openOutsideNetwork(9);
      await outboundFailure(network.outbound.request(requestTo(url)), "blocked");
      assert.deepEqual([network.names.asked, network.dialled], [[], []]);
    });
  }

  for (const { url, why } of HOSTILE_ADDRESSES) {
    const { hostname } = new URL(url);
    const address = hostname.replace(/^\[(.*)\]$/, "$1");
    if (/localhost/.test(address)) continue;
    it(`is not a name that leads to ${address}: ${why}`, async () => {
      await using network = openOutsideNetwork(9);
      network.names.set("hooks.example", [address]);
      const failure = await outboundFailure(
        network.outbound.request(requestTo("https://hooks.example/")),
        "blocked",
      );
      assert.equal(failure.message, BLOCKED);
      assert.equal(failure.cause, undefined);
      assert.deepEqual(network.dialled, []);
    });
  }

  it("is what the operator allows, by name too", async () => {
    await using server = await openOutsideServer(answering(OK));
    await using network = openOutsideNetwork(server.port, ["10.0.0.0/8"]);
    network.names.set("inside.example", ["10.1.2.3"]);
    assert.equal((await network.outbound.request(requestTo("http://inside.example/"))).status, 200);
    network.names.set("other.example", ["192.168.0.1"]);
    await outboundFailure(network.outbound.request(requestTo("http://other.example/")), "blocked");
  });

  it("is never the private address of a name that has public ones too", async () => {
    await using server = await openOutsideServer(answering(OK));
    await using network = openOutsideNetwork(server.port);
    const mixed = ["10.0.0.1", PUBLIC_ADDRESS, "::1", OTHER_PUBLIC_ADDRESS, "169.254.169.254"];
    network.names.set("mixed.example", mixed);
    await network.outbound.request(requestTo("http://mixed.example:8080/"));
    assert.deepEqual(network.dialled, [
      {
        name: "mixed.example",
        addresses: [
          { address: PUBLIC_ADDRESS, family: 4 },
          { address: OTHER_PUBLIC_ADDRESS, family: 6 },
        ],
        port: 8080,
      },
    ]);
  });

  it("is the address that was checked, though the name server changes its mind at once", async () => {
    await using server = await openOutsideServer((socket) => {
      onRequest(socket, () =>
        socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"),
      );
    });
    await using network = openOutsideNetwork(server.port);
    network.names.set("rebinding.example", [PUBLIC_ADDRESS], ["127.0.0.1"]);
    const request = requestTo("http://rebinding.example/");
    assert.equal((await network.outbound.request(request)).text, "ok");
    assert.deepEqual(network.names.asked, ["rebinding.example"]);
    assert.deepEqual(
      network.dialled.map(({ addresses }) => addresses),
      [[{ address: PUBLIC_ADDRESS, family: 4 }]],
    );
    await outboundFailure(network.outbound.request(request), "blocked");
    assert.deepEqual([network.names.asked.length, network.dialled.length], [2, 1]);
  });

  it("is connected to without asking for the name again, by Node itself neither", async () => {
    await using server = await openOutsideServer(answering(OK));
    const names = new FakeNames();
    names.set("no-such-name.invalid", ["127.0.0.1"], ["192.0.2.1"]);
    await using outbound = new GuardedOutbound({ policy, resolve: names.resolve });
    const answer = await outbound.request(requestTo(`http://no-such-name.invalid:${server.port}/`));
    assert.equal(answer.status, 200);
    assert.deepEqual(names.asked, ["no-such-name.invalid"]);
    assert.match(
      server.connections[0]?.received() ?? "",
      new RegExp(`host: no-such-name.invalid:${server.port}`),
    );
  });

  it("is one of several addresses that answers", async () => {
    await using server = await openOutsideServer(answering(OK));
    const names = new FakeNames();
    names.set("two.invalid", ["::1", "127.0.0.1"]);
    const both = new EgressPolicy(["127.0.0.0/8", "::1/128"]);
    await using outbound = new GuardedOutbound({ policy: both, resolve: names.resolve });
    assert.equal((await outbound.request(requestTo(`http://two.invalid:${server.port}/`))).status, 200);
  });

  it("is tried at no more addresses than a few, however many a name has", async () => {
    await using server = await openOutsideServer(answering(OK));
    await using network = openOutsideNetwork(server.port);
    network.names.set(
      "many.example",
      [Array.from({ length: 200 }, (_, index) => `93.184.215.${index}`)].flat(),
    );
    await network.outbound.request(requestTo("http://many.example/"));
    assert.equal(network.dialled[0]?.addresses.length, 8);
  });

  it("is reached through the operating system's names where no others are given", async () => {
    await using server = await openOutsideServer(answering(OK));
    const both = new EgressPolicy(["127.0.0.0/8", "::1/128"]);
    await using open = new GuardedOutbound({ policy: both });
    assert.equal((await open.request(requestTo(`http://localhost:${server.port}/`))).status, 200);
    await using closed = new GuardedOutbound({ policy: new EgressPolicy([]) });
    await outboundFailure(closed.request(requestTo(`http://localhost:${server.port}/`)), "blocked");
    assert.equal(server.connections.length, 1);
  });
});

describe("a header", () => {
  const bad: readonly (readonly [what: string, headers: Record<string, string>])[] = [
    ["ends its line", { "x-a": "b\r\nx-injected: yes" }],
    ["has a line feed", { "x-a": "b\nc" }],
    ["has a carriage return", { "x-a": "b\rc" }],
    ["has a NUL", { "x-a": "b\0c" }],
    ["has an escape", { "x-a": "\u{1b}[2J" }],
    ["is not ASCII", { "x-a": "知微" }],
    ["has a name that ends its line", { "x-a\r\nx-injected": "yes" }],
    ["has a name with a colon", { "x-a: b": "c" }],
    ["has a name with a blank", { "x a": "b" }],
    ["has no name", { "": "b" }],
    ["names another host", { Host: "internal" }],
    ["says where the body ends", { "Content-Length": "1" }],
    ["says how the body is cut", { "transfer-encoding": "chunked" }],
    ["says what becomes of the connection", { connection: "close" }],
    ["asks for another protocol", { Upgrade: "h2c" }],
    ["asks to go on", { expect: "100-continue" }],
  ];
  for (const [what, headers] of bad) {
    it(`is refused before anything is sent when it ${what}`, async () => {
      await using server = await openOutsideServer(answering(OK));
      await using outbound = new GuardedOutbound({ policy });
      const request = requestTo(`http://127.0.0.1:${server.port}/`, { headers });
      await outboundFailure(outbound.request(request), "protocol", /^the header .* nothing was sent$/);
      assert.equal(server.connections.length, 0);
    });
  }
});

describe("giving up", () => {
  it("is immediate for a signal that is aborted already", async () => {
    await using network = openOutsideNetwork(9);
    const request = requestTo("http://hooks.example/", { signal: AbortSignal.abort() });
    await outboundFailure(network.outbound.request(request), "aborted");
    assert.deepEqual(network.names.asked, []);
  });

  it("closes the connection of a request under way", async () => {
    await using server = await openOutsideServer(() => {});
    await using outbound = new GuardedOutbound({ policy });
    const given = new AbortController();
    const url = `http://127.0.0.1:${server.port}/`;
    const failed = outboundFailure(outbound.request(requestTo(url, { signal: given.signal })), "aborted");
    const { socket, closed } = await server.connection(0);
    await once(socket, "data");
    given.abort();
    await failed;
    await closed;
  });

  it("while there is no connection sends nothing when there is one", async () => {
    await using server = await openOutsideServer(answering(OK));
    const { promise: dialled, resolve } = Promise.withResolvers<() => void>();
    await using outbound = new GuardedOutbound({
      policy,
      dial: () => {
        const socket = new Socket();
        resolve(() => socket.connect(server.port, "127.0.0.1"));
        return socket;
      },
    });
    const request = requestTo(`http://127.0.0.1:${server.port}/`, { timeoutMs: 50 });
    await outboundFailure(outbound.request(request), "timeout");
    (await dialled)();
    const { closed, received } = await server.connection(0);
    await closed;
    assert.equal(received(), "");
  });

  it("is what all requests do when the way out is closed, and later ones too", async () => {
    await using server = await openOutsideServer(() => {});
    const outbound = new GuardedOutbound({ policy });
    const url = `http://127.0.0.1:${server.port}/`;
    const failed = outboundFailure(outbound.request(requestTo(url)), "aborted", /stopping/);
    const { socket, closed } = await server.connection(0);
    await once(socket, "data");
    await outbound[Symbol.asyncDispose]();
    await failed;
    await closed;
    await outboundFailure(outbound.request(requestTo(url)), "aborted", /stopping/);
  });

  it("leaves no connection behind that was still being made", async () => {
    await using server = await openOutsideServer(answering(OK));
    const names = new FakeNames();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const { promise: answer, resolve: tell } = Promise.withResolvers<void>();
    const outbound = new GuardedOutbound({
      policy,
      resolve: async (name) => {
        ask();
        await answer;
        names.set(name, ["127.0.0.1"]);
        return names.resolve(name);
      },
    });
    const failed = outboundFailure(
      outbound.request(requestTo(`http://late.invalid:${server.port}/`)),
      "aborted",
    );
    await asked;
    await outbound[Symbol.asyncDispose]();
    await failed;
    tell();
    await nextTurn();
    assert.equal(server.connections.length, 0);
  });

  it("closes a connection that is not there yet", async () => {
    const socket = new Socket();
    const { promise: dialled, resolve } = Promise.withResolvers<void>();
    const outbound = new GuardedOutbound({
      policy,
      dial: () => {
        resolve();
        return socket;
      },
    });
    const failed = outboundFailure(outbound.request(requestTo("http://127.0.0.1/")), "aborted", /stopping/);
    await dialled;
    await outbound[Symbol.asyncDispose]();
    await failed;
    assert.equal(socket.destroyed, true);
  });
});
