import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isRelayErrorCode } from "@a2a-relay/protocol";
import { HTTP_STATUS } from "../../packages/relay/src/transports/http/http-error.ts";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";

const JSON_TYPE = { "content-type": "application/json" };

/** One relay takes all of it and still serves the next request. */
describe("a relay under hostile input", () => {
  let relay: HttpRelay;
  before(async () => {
    relay = await openHttpRelay();
  });
  after(async () => {
    const { json } = await relay.get("/journal/verify");
    assert.equal(json.ok, true);
    assert.equal((await relay.get("/events?type=message.accepted&limit=500")).json.events.length, 0);
    await relay[Symbol.asyncDispose]();
  });

  const bodies: readonly [what: string, body: string | Buffer][] = [
    ["half an object", '{"to":'],
    ["two objects", "{}{}"],
    ["a comment", "{} // x"],
    ["single quotes", "{'to':'x'}"],
    ["a byte order mark", "\ufeff{}"],
    ["a number", "7"],
    ["null", "null"],
    ["a text", '"x"'],
    ["NaN", '{"deadline_ms":NaN}'],
    ["NUL bytes", "\0\0\0"],
    ["a NUL in a name", Buffer.from('{"\0":1}')],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    ["overlong UTF-8", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ["a surrogate as UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["UTF-16", Buffer.from('{"to":"x"}', "utf16le")],
    ["a list of lists", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["objects without end", '{"a":'.repeat(50_000)],
    ["nothing at all", ""],
    ["blanks", "   \n "],
  ];
  for (const [what, body] of bodies) {
    it(`refuses ${what} as a body, on every route that takes one`, async () => {
      const paths = ["/messages", "/agents/register", "/messages/batch", "/mailbox/lulu/ack", "/repair"];
      for (const path of paths) {
        await relay.refused(relay.call("POST", path, body, { headers: JSON_TYPE }), "invalid_argument");
      }
    });
  }

  const messages: readonly [what: string, message: string][] = [
    ["a lone surrogate", '"body":"\\ud800"'],
    ["U+0000", '"body":"a\\u0000b"'],
    ["U+0000 in an unknown member", '"body":"x","x":[{"y":"\\u0000"}]'],
    ["a lone surrogate in a name", '"body":"x","\\udc00":1'],
    ["a lone surrogate deep inside", '"body":"x","x":[[{"y":"\\udfff"}]]'],
    ["nesting beyond the limit", `"body":"x","x":${"[".repeat(70)}${"]".repeat(70)}`],
    ["nesting that overflows a stack", `"body":"x","x":${"[".repeat(20_000)}${"]".repeat(20_000)}`],
    ["a NUL in its id", '"body":"x","id":"a\\u0000b"'],
    ["dots in its id", '"body":"x","id":".."'],
    ["a slash in its thread", '"body":"x","thread_id":"a/b"'],
    ["a deadline of 1e400", '"body":"x","type":"request","deadline_ms":1e400'],
    ["a negative deadline", '"body":"x","type":"request","deadline_ms":-1'],
    ["a date before 1970", '"body":"x","created_at":"1969-12-31T23:59:59Z"'],
    ["30 February", '"body":"x","created_at":"2026-02-30T00:00:00Z"'],
    ["the year 10000", '"body":"x","expires_at":"+010000-01-01T00:00:00Z"'],
    ["a body that is an object", '"body":{"toString":"x"}'],
    ["parts that are not", '"parts":{"length":1}'],
    ["a prototype", '"body":"x","__proto__":{"type":"request"},"type":"constructor"'],
  ];
  for (const [what, members] of messages) {
    it(`refuses a message with ${what}`, async () => {
      const message = `{"from":"${LULU}","to":"${ZHIWEI}",${members}}`;
      await relay.refused(relay.post("/messages", message), "invalid_argument");
    });
  }

  const paths: readonly [what: string, path: string][] = [
    ["dots", "/agents/.."],
    ["encoded dots", "/agents/%2e%2e"],
    ["dots and encoded slashes", "/agents/..%2f..%2fetc%2fpasswd"],
    ["an encoded slash", "/messages/a%2Fb"],
    ["an encoded backslash", "/messages/a%5cb"],
    ["an encoded NUL", "/messages/a%00b"],
    ["an encoded line break", "/messages/a%0d%0aSet-Cookie:x"],
    ["an encoded lone surrogate", "/messages/%ED%A0%80"],
    ["half an encoding", "/messages/%E7%9F"],
    ["a percent sign alone", "/messages/100%"],
    ["no hexadecimal digits", "/messages/%zz"],
    ["an empty id", "/messages/"],
    ["an empty agent", "/mailbox//"],
    ["a long id", `/messages/${"x".repeat(900)}`],
    ["a very long id", `/messages/${"x".repeat(8_000)}`],
    ["a template", "/messages/%7B%7B7*7%7D%7D"],
    ["SQL", "/messages/'%20or%201=1--"],
  ];
  for (const [what, path] of paths) {
    it(`refuses a path with ${what}`, async () => {
      const { status } = await relay.get(path);
      assert.ok(status === 400 || status === 404 || status === 413, `${status}`);
    });
  }

  const queries = [
    "limit=%00",
    "limit=%zz",
    "limit[]=1",
    "limit=1;drop",
    "__proto__=1",
    "__proto__[limit]=1",
    "constructor.prototype.limit=1",
    "since=%ED%A0%80",
    `since=${"9".repeat(100)}`,
    "limit=NaN",
    "limit=Infinity",
    "limit=0x10",
    "=1",
    "&&&",
  ];
  for (const query of queries) {
    it(`survives the query ${query.slice(0, 40)}`, async () => {
      const { status } = await relay.get(`/mailbox/lulu?${query}`);
      assert.ok(status === 200 || status === 400 || status === 413, `${status}`);
    });
  }

  it("refuses fields that a route does not have, so that a misspelt one is never without effect", async () => {
    const misspelt: readonly [path: string, body: object][] = [
      ["/agents/register", { agentid: "x" }],
      ["/messages/batch", { messages: [{ to: "missing" }], atomc: true }],
      ["/mailbox/lulu/ack", { ids: ["m"] }],
      ["/mailbox/lulu/lease", { leaseMs: 5 }],
      ["/mailbox/lulu/fail", { message_id: "m", reason: "x", lease: "l" }],
      ["/tasks/t/complete", { result: "x" }],
      ["/tasks/t/cancel", { why: "x" }],
      ["/repair/retry-stale", { enable: true }],
    ];
    for (const [path, body] of misspelt) {
      await relay.refused(relay.post(path, body), "invalid_argument", /unknown field/);
    }
    const misspeltQueries = [
      "/mailbox/lulu?limt=1",
      "/tasks?status=x",
      "/events?after=1",
      "/queue?age=1",
      "/agents?page=2",
    ];
    for (const path of misspeltQueries)
      await relay.refused(relay.get(path), "invalid_argument", /unknown field .*; the known ones are \w+/);
  });

  const types = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "",
    "json",
    "application/xml",
  ];
  for (const type of types) {
    it(`refuses a body of the type "${type}", so that no web form can post one`, async () => {
      const headers = { "content-type": type };
      const sent = relay.call("POST", "/messages", '{"from":"lulu","to":"zhiwei","body":"x"}', { headers });
      const { status, json } = await sent;
      assert.deepEqual([status, json.error.code], [415, "unsupported_media_type"]);
    });
  }

  it("refuses a body without a type", async () => {
    const answer = await relay.bytes(
      `POST /messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
    );
    assert.match(answer, /^HTTP\/1\.1 415 .*\{"error":\{"code":"unsupported_media_type"/s);
  });

  const wires: readonly [what: string, bytes: string, status: number][] = [
    ["no HTTP at all", "hello\r\n\r\n", 400],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400],
    ["a header without a name", "GET /health HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n", 400],
    [
      "two lengths",
      "POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
      400,
    ],
    [
      "a length and chunks",
      "POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    ["a huge header", `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(40_000)}\r\n\r\n`, 413],
    ["no host", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
  ];
  for (const [what, bytes, status] of wires) {
    it(`answers ${what} on the wire with an error of the usual shape`, async () => {
      const answer = await relay.bytes(bytes);
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `));
      const { error } = JSON.parse(body) as { error: { code: string; message: string } };
      assert.ok(isRelayErrorCode(error.code));
      assert.equal(HTTP_STATUS[error.code], status);
    });
  }

  for (const target of ["/mailbox/知微/stream", "/mailbox/zhiwei/stream?since=昨天"]) {
    it(`says how to write ${target} on the wire`, async () => {
      const answer = await relay.bytes(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 400 .*path or query .*percent-encode it/s);
    });
  }

  it("keeps strange but honest messages as they are", async () => {
    await using other = await openHttpRelay();
    const strange = {
      body: "\u0001\u001b[31m‮知微\u2028你好🦊",
      subject: "'; drop table message; --",
      "": "empty name",
      constructor: "x",
      hasOwnProperty: 1,
      x_number: 1e308,
      x_zero: -0.5,
      parts: [{ text: "a" }, { nested: { "a.b": [null, true] } }],
    };
    const { message_id } = await other.send(strange);
    const { message } = (await other.get(`/messages/${message_id}`)).json;
    assert.deepEqual({ ...message, ...strange }, message);
  });
});
