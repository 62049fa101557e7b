import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS, SOCKET_CLOSE, SOCKET_KEY_PREFIX, SOCKET_PROTOCOL, SOCKET_VERBS } from "@a2a-relay/protocol";
import fc from "fast-check";
import { type HttpRelay, LULU, openHttpRelay, ZHIWEI } from "../../packages/relay/testing/http-relay.ts";
import { SocketClient, type SocketOptions } from "../support/socket-client.ts";

const PATH = `/mailbox/${ZHIWEI}/ws`;
const OPERATOR_KEY = "the-operators-own-key-0123456789";
const TIMEOUT = { timeout: 60_000 };

function open(relay: HttpRelay, query = "", options: SocketOptions = {}): Promise<SocketClient> {
  return SocketClient.open(relay.url, PATH + query, options);
}

async function openKeyed(env: Readonly<Record<string, string>> = {}): Promise<HttpRelay> {
  const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
  return openHttpRelay({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY, ...env }, headers });
}

const aMessage = (body: string): object => ({ from: LULU, to: ZHIWEI, body });

describe("a mailbox over a socket", TIMEOUT, () => {
  it("sends open messages, then new ones at once, and resumes behind a cursor", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ body: "一" });
    await using socket = await open(relay);
    const first = await socket.next();
    assert.deepEqual([first.type, first.cursor, first.messages?.length], ["mail", "1", 1]);
    await relay.send({ body: "二" });
    assert.equal((await socket.messages(1))[0]?.message.body, "二");
    await using resumed = await open(relay, "?since=1");
    assert.equal((await resumed.messages(1))[0]?.message.body, "二");
    const { json } = await relay.get(`/mailbox/${ZHIWEI}?peek=true`);
    await using all = await open(relay, "?peek=true");
    assert.deepEqual(await all.messages(2), json.messages);
  });

  it("shows notices, or nothing by itself, where that is asked for", async () => {
    await using relay = await openHttpRelay();
    await relay.send({ subject: "看看", body: "秘密" });
    await using notices = await open(relay, "?notice=true");
    const frame = await notices.next();
    assert.deepEqual([frame.type, frame.notices?.[0]?.subject], ["notice", "看看"]);
    await using quiet = await open(relay, "?quiet=true");
    const { messages } = await quiet.ask("lease", { max: 5 });
    assert.equal(messages.length, 1);
  });

  it("sends, alone and in batches, and answers with what the routes answer", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay);
    const { message, receipt } = await socket.ask("send", aMessage("一"));
    assert.deepEqual([message.body, receipt.recipient], ["一", ZHIWEI]);
    const messages = [aMessage("二"), { body: 7 }, aMessage("三")];
    const { results } = await socket.ask("send_batch", { messages });
    assert.deepEqual(
      results.map(({ status }) => status),
      [201, 400, 201],
    );
    const bodies = (await socket.messages(3)).map((item) => item.message.body);
    assert.deepEqual(bodies, ["一", "二", "三"]);
  });

  it("leases, renews, gives back, acknowledges and fails", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay, "?quiet=true");
    for (const body of ["一", "二", "三"]) await socket.ask("send", aMessage(body));
    const { messages } = await socket.ask("lease", { max: 3, lease_ms: 60_000, worker: "w1" });
    const [one, two, three] = messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id }));
    assert.ok(one && two && three);
    assert.equal((await socket.ask("renew", { leases: [one, two], lease_ms: 1_000 })).renewed, 2);
    assert.equal((await socket.ask("release", { leases: [two] })).released, 1);
    assert.equal((await socket.ask("ack", { leases: [one], message_ids: [two.message_id] })).acknowledged, 2);
    await socket.ask("fail", { ...three, reason: "不会" });
    const { json } = await relay.get("/queue?state=dead");
    assert.deepEqual(
      json.entries.map(({ message_id }) => message_id),
      [three.message_id],
    );
    assert.equal((await socket.ask("lease")).messages.length, 0);
  });

  it("answers in whatever order things are done, each to its request", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay, "?quiet=true");
    const waiting = socket.ask("lease", { wait_ms: 60_000 });
    const sent = await Promise.all(
      Array.from({ length: LIMITS.socketRequestsMax * 3 }, (_, index) =>
        socket.ask("send", aMessage(`${index}`)),
      ),
    );
    assert.deepEqual(
      sent.map(({ message }) => message.body),
      sent.map((_, index) => `${index}`),
    );
    assert.equal((await waiting).messages[0]?.message.body, "0");
    const { messages } = await socket.ask("lease", { max: LIMITS.leaseCountMax });
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      sent.slice(1, 1 + messages.length).map(({ message }) => message.body),
    );
  });

  it("says what was wrong and stays open", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay);
    for (const [frame, words] of [
      ["不是 JSON", /^frame: is not valid JSON/],
      [Buffer.from([1, 2, 3]), /^frame: is binary/],
      ["[]", /request/],
      ["null", /request/],
      ['{"verb":"send"}', /id is missing/],
      ['{"id":7,"verb":"send"}', /^id/],
      ["", /request/],
    ] as const) {
      socket.ws.send(frame);
      const { type, error } = await socket.next();
      assert.deepEqual([type, error?.code], ["error", "invalid_argument"], String(frame));
      assert.match(error?.message ?? "", words);
    }
    const unknown = await socket.request("dance");
    assert.deepEqual([unknown.type, unknown.error?.code], ["answer", "invalid_argument"]);
    assert.match(unknown.error?.message ?? "", /verb: must be one of send/);
    let deep: unknown = "x";
    for (let depth = 0; depth < 100; depth += 1) deep = [deep];
    assert.match(
      (await socket.request("send", { ...aMessage("x"), deep })).error?.message ?? "",
      /nested deeper/,
    );
    assert.equal(
      (await socket.request("send", { ...aMessage("x"), to: "missing" })).error?.code,
      "unknown_agent",
    );
    assert.match((await socket.request("send", aMessage("知\0微"))).error?.message ?? "", /U\+0000/);
    assert.equal((await socket.request("ack", {})).error?.code, "invalid_argument");
    assert.equal((await socket.request("renew")).error?.code, "invalid_argument");
    await socket.ask("send", aMessage("还在"));
  });

  it("answers every input with one frame, never with an internal error", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay, "?quiet=true");
    const verb = fc.oneof(fc.constantFrom<unknown>(...SOCKET_VERBS), fc.jsonValue());
    const member = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>("m1", ZHIWEI, [], {}, 2 ** 53, "\ud800"),
    );
    const names = fc.constantFrom(
      "from",
      "to",
      "body",
      "max",
      "leases",
      "message_ids",
      "lease_ms",
      "messages",
    );
    const input = fc.oneof(fc.jsonValue(), fc.dictionary(names, member));
    const frame = fc.oneof(
      fc.record({ id: fc.oneof(fc.constant("a"), fc.jsonValue()), verb, input }, { requiredKeys: [] }),
      fc.jsonValue(),
    );
    await fc.assert(
      fc.asyncProperty(frame, async (sent) => {
        socket.ws.send(JSON.stringify(sent));
        const { type, error } = await socket.next();
        assert.ok(type === "answer" || type === "error");
        assert.notEqual(error?.code, "internal");
      }),
      { numRuns: 300 },
    );
  });

  it("answers pings, and closes a socket that does not answer its own", async () => {
    await using relay = await openHttpRelay({ flags: { "heartbeat-ms": "32" } });
    await using patient = await open(relay);
    patient.ws.ping("在吗");
    const [pong] = await new Promise<[Buffer]>((resolve) =>
      patient.ws.once("pong", (data) => resolve([data])),
    );
    assert.equal(pong.toString(), "在吗");
    await using dead = await open(relay, "", { autoPong: false });
    assert.equal((await dead.closed).code, 1006);
    await patient.ask("send", aMessage("还在"));
  });

  it("takes a frame as long as a batch may be, and no longer", async () => {
    await using relay = await openHttpRelay();
    await using socket = await open(relay, "?quiet=true");
    socket.ws.send(" ".repeat(LIMITS.batchBodyBytesMax + 1));
    assert.equal((await socket.closed).code, SOCKET_CLOSE.tooLarge);
  });

  it("of an agent that has another one open leaves that alone when it closes", async () => {
    await using relay = await openHttpRelay();
    await using old = await open(relay);
    await using next = await open(relay);
    old.ws.close();
    await old.closed;
    await relay.send({ body: "给新的" });
    assert.equal((await next.messages(1))[0]?.message.body, "给新的");
    const openNow = async (): Promise<boolean> =>
      (await relay.get("/metrics")).text.includes('a2a_relay_open_streams{kind="socket"} 1');
    while (!(await openNow())) continue;
  });
});

describe("who may have a socket", TIMEOUT, () => {
  it("is asked before there is one", async () => {
    await using relay = await openKeyed();
    const { key } = (await relay.post("/keys", { agent_id: LULU })).json;
    const refusals = [
      [{}, 401, "unauthenticated"],
      [{ headers: { authorization: "Bearer wrong" } }, 401, "unauthenticated"],
      [{ headers: { authorization: `Bearer ${key}` } }, 403, "permission_denied"],
      [
        { headers: { authorization: `Bearer ${OPERATOR_KEY}`, origin: "https://evil.example" } },
        403,
        "permission_denied",
      ],
    ] as const;
    for (const [options, status, code] of refusals) {
      for (const path of [PATH, `${PATH}?quiet=true`]) {
        const [answered, { error }] = await SocketClient.refused(relay.url, path, options);
        assert.deepEqual([answered, error?.code], [status, code], path);
      }
    }
    const { json } = await relay.get("/events?type=access.unauthenticated");
    assert.equal(json.events[0]?.data["transport"], "websocket");
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    for (const [path, status] of [
      [`${PATH}?since=x`, 400],
      [`${PATH}?color=red`, 400],
      ["/mailbox/missing/ws", 404],
      ["/mailbox/missing/ws?quiet=true", 404],
      ["/mailbox/%zz/ws", 400],
      [`/mailbox/${"x".repeat(1_001)}/ws`, 413],
    ] as const) {
      assert.equal((await SocketClient.refused(relay.url, path, { headers }))[0], status, path);
    }
  });

  it("that is refused loses its connection, on which nothing else could be asked", async () => {
    await using relay = await openHttpRelay();
    for (const [path, status] of [
      ["/mailbox/missing/ws", 404],
      ["/mailbox/%zz/ws", 400],
      [`${PATH}?since=x`, 400],
    ] as const) {
      const said = await relay.bytes(
        [`GET ${path} HTTP/1.1`, "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"].join("\r\n"),
        "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      assert.match(said, new RegExp(`^HTTP/1.1 ${status} `), path);
    }
  });

  it("may show its key as a subprotocol, which does not come back", async () => {
    await using relay = await openKeyed();
    const { key } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
    const shown = SOCKET_KEY_PREFIX + Buffer.from(key).toString("base64url");
    await using socket = await open(relay, "", { subprotocols: [SOCKET_PROTOCOL, shown] });
    assert.equal(socket.ws.protocol, SOCKET_PROTOCOL);
    assert.equal((await socket.request("send", aMessage("冒充"))).error?.code, "permission_denied");
    await socket.ask("send", { from: ZHIWEI, to: LULU, body: "自己" });
    const wrong = { subprotocols: [SOCKET_PROTOCOL, `${SOCKET_KEY_PREFIX}!!!!`] };
    assert.equal((await SocketClient.refused(relay.url, PATH, wrong))[0], 401);
  });

  it("in another tenant has the mailbox there", async () => {
    await using relay = await openKeyed();
    const { key } = (await relay.post("/keys", { tenant: "acme" })).json;
    const headers = { authorization: `Bearer ${key}` };
    for (const agent_id of [LULU, ZHIWEI]) await relay.post("/t/acme/agents/register", { agent_id });
    await relay.send({ body: "秘密" });
    await using socket = await SocketClient.open(relay.url, `/t/acme${PATH}`, { headers });
    await socket.ask("send", aMessage("他们的"));
    assert.equal((await socket.messages(1))[0]?.message.body, "他们的");
  });

  it("loses it once its key has ended, with the answer to what it asked", async () => {
    await using relay = await openKeyed();
    const { key, key_id } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
    await using socket = await open(relay, "?quiet=true", { headers: { authorization: `Bearer ${key}` } });
    await relay.post(`/keys/${key_id}/revoke`);
    const { error } = await socket.request("lease");
    assert.equal(error?.code, "unauthenticated");
    const { code, reason } = await socket.closed;
    assert.equal(code, SOCKET_CLOSE.unauthenticated);
    assert.match(reason, /this key ended/);
  });

  it("loses it without asking anything, at the next heartbeat or the next message", async () => {
    await using relay = await openKeyed({ A2A_RELAY_HEARTBEAT_MS: "50" });
    for (const query of ["", "?quiet=true"]) {
      const { key, key_id } = (await relay.post("/keys", { agent_id: ZHIWEI })).json;
      await using socket = await open(relay, query, { headers: { authorization: `Bearer ${key}` } });
      await relay.post(`/keys/${key_id}/revoke`);
      assert.equal((await socket.closed).code, SOCKET_CLOSE.unauthenticated);
    }
  });

  it("is told to ask for it as one, where it does not", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get(PATH), "invalid_argument", /WebSocket/);
    assert.equal((await relay.call("HEAD", PATH)).status, 404);
  });

  it("may offer an upgrade with any other call, and is answered as if it had not", async () => {
    await using relay = await openHttpRelay();
    const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "" };
    const sent = await relay.post("/messages", aMessage("来自别的客户端"), { headers });
    assert.equal(sent.status, 201, sent.text);
    const other = { headers: { connection: "Upgrade", upgrade: "websocket" } };
    assert.equal((await relay.get("/health", other)).status, 200);
  });
});
