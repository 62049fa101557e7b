import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import { type Respond, type WireAnswer, WireServer } from "../../testing/wire-server.ts";
import type { RelayClientOptions } from "./relay-client-options.ts";
import { RelayClient } from "../client/relay-client.ts";

const HEALTHY = { json: { status: "ok", version: "0.1.0" } };
const ACCEPTED = { status: 201, json: { message: {}, receipt: { message_id: "m1", stage: "accepted" } } };
const EMPTY = { json: { messages: [], cursor: "0" } };
const note = { from: "a@demo", to: "b@demo", body: "知微你好" };

async function setup(respond: Respond, options: Partial<RelayClientOptions> = {}) {
  const server = await WireServer.start(respond);
  // No delay between tries, unless a test is about delays.
  const client = new RelayClient({ url: server.url, retryDelayMs: 0, ...options });
  return { server, client };
}

/** Answers with each of these once, then with the last one for ever. */
function inTurn(...answers: readonly [WireAnswer, ...WireAnswer[]]): Respond {
  let index = 0;
  return () => answers[Math.min(index++, answers.length - 1)] ?? answers[0];
}

function refusal(status: number, code: string, headers: Record<string, string> = {}): WireAnswer {
  return { status, headers, json: { error: { code, message: `because ${code}`, details: { why: "test" } } } };
}

describe("errors of a relay", () => {
  it("keep their code, message and details", async () => {
    const { server, client } = await setup(() => refusal(409, "lease_lost"));
    await using _ = server;
    await assert.rejects(client.task("t1"), (error: unknown) => {
      assert.ok(error instanceof RelayError);
      assert.equal(error.code, "lease_lost");
      assert.equal(error.message, "because lease_lost");
      assert.deepEqual(error.details, { why: "test" });
      return true;
    });
    assert.equal(server.requests.length, 1);
  });

  it("of a code this client does not know keep it in the details", async () => {
    const { server, client } = await setup(() => refusal(418, "teapot"));
    await using _ = server;
    await assert.rejects(client.task("t1"), {
      code: "internal",
      message: "because teapot",
      details: { why: "test", code: "teapot" },
    });
  });
});

describe("an address where no relay answers", () => {
  it("gives the address and what to do about it", async () => {
    const { server, client } = await setup(() => HEALTHY, { retries: 1 });
    const { url } = server;
    await server.close();
    await assert.rejects(client.agents(), (error: unknown) => {
      assert.ok(error instanceof RelayError);
      assert.equal(error.code, "unavailable");
      assert.match(error.message, /ECONNREFUSED/);
      assert.ok(error.message.includes(url));
      assert.match(error.message, /is the relay running\? Start it with `a2a-relay serve`/);
      return true;
    });
  });

  const foreign: readonly [string, WireAnswer, string, RegExp][] = [
    [
      "a page",
      { text: "<html>Welcome to nginx!" },
      "unavailable",
      /answered 200 with text\/html "<html>Welcome/,
    ],
    ["other JSON", { json: { hello: "world" } }, "unavailable", /without the expected "agents"/],
    ["JSON that is no object", { json: ["agents"] }, "unavailable", /really an a2a-relay/],
    ["a foreign 404", { status: 404, text: "Not here" }, "unavailable", /answered 404/],
    ["a login wall", { status: 401, text: "<html>Sign in" }, "unauthenticated", /answered 401/],
    ["a proxy's size limit", { status: 413, text: "too big" }, "too_large", /answered 413/],
    [
      "a redirect",
      { status: 301, headers: { location: "https://relay.example.org/" }, text: "" },
      "unavailable",
      /a redirect to "https:\/\/relay.example.org\/"/,
    ],
  ];
  for (const [name, answer, code, message] of foreign) {
    it(`is told from a relay when it answers with ${name}`, async () => {
      const { server, client } = await setup(() => answer);
      await using _ = server;
      await assert.rejects(client.agents(), { name: "RelayError", code, message });
      assert.equal(server.requests.length, 1);
    });
  }
});

describe("tries", () => {
  const transient: readonly [string, WireAnswer][] = [
    ["a broken connection", "reset"],
    ["an answer that breaks off in the middle", "reset_midway"],
    ["429", refusal(429, "resource_exhausted")],
    ["502 of a gateway", { status: 502, text: "<html>Bad Gateway" }],
    ["503", refusal(503, "unavailable")],
    ["504 of a gateway", { status: 504, text: "<html>Gateway Timeout" }],
  ];
  for (const [name, answer] of transient) {
    it(`repeat a send after ${name}, under one key`, async () => {
      const { server, client } = await setup(inTurn(answer, answer, ACCEPTED));
      await using _ = server;
      const { receipt } = await client.send(note);
      assert.equal(receipt.message_id, "m1");
      const keys = server.requests.map(({ body }) => body["idempotency_key"]);
      assert.equal(keys.length, 3);
      assert.equal(new Set(keys).size, 1);
      assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
    });
  }

  it("end after the number that was asked for", async () => {
    const { server, client } = await setup(() => refusal(503, "unavailable"), { retries: 2 });
    await using _ = server;
    await assert.rejects(client.send(note), { code: "unavailable", message: "because unavailable" });
    assert.equal(server.requests.length, 3);
  });

  for (const [status, code] of [
    [400, "invalid_argument"],
    [409, "conflict"],
    [429, "mailbox_full"],
    [500, "internal"],
    [507, "storage_full"],
  ] as const) {
    it(`are not repeated after ${status} ${code}`, async () => {
      const { server, client } = await setup(() => refusal(status, code));
      await using _ = server;
      await assert.rejects(client.send(note), { code });
      assert.equal(server.requests.length, 1);
    });
  }

  it("wait as long as Retry-After says", async () => {
    const { server, client } = await setup(
      inTurn(refusal(503, "unavailable", { "retry-after": "1" }), ACCEPTED),
    );
    await using _ = server;
    const beginMs = performance.now();
    await client.send(note);
    const tookMs = performance.now() - beginMs;
    assert.ok(tookMs >= 990, `took ${tookMs} ms`);
  });

  it("give up when Retry-After is longer than the longest delay", async () => {
    const { server, client } = await setup(() => refusal(503, "unavailable", { "retry-after": "3600" }));
    await using _ = server;
    await assert.rejects(client.send(note), { code: "unavailable" });
    assert.equal(server.requests.length, 1);
  });

  it("go on through the restart of a relay", async () => {
    const { server, client } = await setup(() => EMPTY, { retries: 50, retryDelayMs: 20 });
    await using _ = server;
    await server.close();
    const reading = client.readMailbox("a@demo");
    await server.open();
    assert.deepEqual((await reading).messages, []);
  });
});

describe("what must not happen twice", () => {
  it("is not repeated after a lost reply", async () => {
    const { server, client } = await setup(() => "reset");
    await using _ = server;
    const calls = [
      () => client.lease("a@demo", { max: 1 }),
      () =>
        client.repair({
          message_id: "m1",
          reason: "stuck",
          command: { action: "force_error", message: "x" },
        }),
      () => client.retryStale({ enabled: true }),
      () => client.register({ display_name: "nameless" }),
      () => client.addArtifact("t1", { artifact: { parts: [{ text: "more" }] }, append: true }),
    ];
    for (const call of calls) await assert.rejects(call(), { code: "unavailable" });
    assert.equal(server.requests.length, calls.length);
  });

  it("is repeated when the relay says that it did nothing", async () => {
    const { server, client } = await setup(inTurn(refusal(503, "unavailable"), EMPTY));
    await using _ = server;
    assert.deepEqual((await client.lease("a@demo")).messages, []);
    assert.equal(server.requests.length, 2);
  });

  it("is repeated when the relay was never reached", async () => {
    const { server, client } = await setup(() => EMPTY, { retries: 50, retryDelayMs: 20 });
    await using _ = server;
    await server.close();
    const leasing = client.lease("a@demo");
    await server.open();
    assert.deepEqual((await leasing).messages, []);
  });

  it("is asked once when the question is about this moment", async () => {
    const { server, client } = await setup(() => refusal(503, "unavailable"));
    await using _ = server;
    await assert.rejects(client.ready(), { code: "unavailable" });
    await assert.rejects(client.health(), { code: "unavailable" });
    assert.equal(server.requests.length, 2);
  });
});

describe("time", () => {
  it("limits a try, and the error says so", async () => {
    const { server, client } = await setup(() => "silence", { timeoutMs: 30, retries: 1 });
    await using _ = server;
    await assert.rejects(client.agents(), { code: "unavailable", message: /no answer within 30 ms/ });
    assert.equal(server.requests.length, 2);
  });

  it("of a long poll comes on top of the limit", async () => {
    const slow: Respond = async ({ query }) => {
      await new Promise((resolve) => setTimeout(resolve, Number(query.get("wait_ms"))));
      return EMPTY;
    };
    const { server, client } = await setup(slow, { timeoutMs: 100, retries: 0 });
    await using _ = server;
    assert.deepEqual((await client.readMailbox("a@demo", { wait_ms: 200 })).messages, []);
  });

  it("ends with the caller's signal: in a request, between tries, and before the first", async () => {
    const reason = new Error("the user has gone");
    const { server, client } = await setup(() => "silence", { retryDelayMs: 10_000 });
    await using _ = server;
    const inRequest = new AbortController();
    const arrived = server.next(() => true);
    const waiting = client.agents({}, inRequest);
    const request = await arrived;
    inRequest.abort(reason);
    await assert.rejects(waiting, reason);
    assert.equal(request.signal.aborted || (await aborted(request.signal)), true);
    await assert.rejects(client.agents({}, inRequest), reason);
    assert.equal(server.requests.length, 1);

    const refusing = await setup(() => refusal(503, "unavailable"), {
      retryDelayMs: 600_000,
      retryDelayMsMax: 600_000,
    });
    await using __ = refusing.server;
    const between = new AbortController();
    const refused = refusing.server.next(() => true);
    const retrying = refusing.client.agents({}, between);
    await refused;
    setTimeout(() => between.abort(reason), 20);
    await assert.rejects(retrying, reason);
  });
});

function aborted(signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(true), { once: true });
  });
}
