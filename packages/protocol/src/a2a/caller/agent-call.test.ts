import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { A2aOperation } from "../a2a-dialect.ts";
import { isUnknownMethod, readA2aAnswer, readA2aEvent } from "./agent-answer.ts";
import type { AgentInterface } from "./agent-interface.ts";
import { a2aRequest } from "./agent-request.ts";

const RPC: AgentInterface = {
  url: "https://a.example/rpc",
  binding: "JSONRPC",
  dialect: "1.0",
  a2aTenant: null,
};
const REST: AgentInterface = { ...RPC, url: "https://a.example/rest/", binding: "HTTP+JSON" };
const OLD_REST: AgentInterface = { ...REST, dialect: "0.3" };
const MESSAGE = { messageId: "m", role: "ROLE_USER", parts: [{ text: "你好" }] };
const TASK = { id: "t", status: { state: "TASK_STATE_WORKING" } };
const GET = { operation: "get", id: "7" } as const;

function call(operation: A2aOperation, params: object = {}): Parameters<typeof a2aRequest>[1] {
  return { operation, params: { ...params }, id: "7" };
}

describe("a request to an agent", () => {
  it("over JSON-RPC names the method of its dialect, and its tenant", () => {
    const { method, url, headers, body } = a2aRequest({ ...RPC, a2aTenant: "甲" }, call("get", { id: "t" }));
    assert.deepEqual([method, url], ["POST", RPC.url]);
    assert.deepEqual(headers, {
      accept: "application/json",
      "content-type": "application/json",
      "a2a-version": "1.0",
    });
    assert.deepEqual(body, { jsonrpc: "2.0", id: "7", method: "GetTask", params: { id: "t", tenant: "甲" } });
    const older = a2aRequest({ ...RPC, dialect: "0.3" }, call("send", { message: MESSAGE }));
    assert.equal(older.body?.["method"], "message/send");
    assert.equal(older.headers["a2a-version"], undefined);
  });

  it("in 0.1 names its task after the message", () => {
    const { body } = a2aRequest({ ...RPC, dialect: "0.1" }, call("send", { message: MESSAGE }));
    const { params } = body as { readonly params: { readonly id: string } };
    assert.equal(params.id, "m");
  });

  it("over HTTP+JSON has its ids in the path and the rest in the query or the body", () => {
    const get = a2aRequest({ ...REST, a2aTenant: "甲" }, call("get", { id: "一", historyLength: 2 }));
    assert.deepEqual([get.method, get.body], ["GET", undefined]);
    assert.equal(decodeURI(get.url), "https://a.example/rest/甲/tasks/一?historyLength=2");
    assert.deepEqual(Object.keys(get.headers), ["accept", "a2a-version"]);
    const send = a2aRequest(REST, call("send", { message: MESSAGE }));
    assert.deepEqual([send.method, send.url], ["POST", "https://a.example/rest/message:send"]);
    assert.deepEqual(send.body, { message: MESSAGE });
  });

  it("over HTTP+JSON of 0.3 is below v1, which its address may have already", () => {
    for (const url of ["https://a.example/x", "https://a.example/x/", "https://a.example/x/v1"]) {
      const request = a2aRequest({ ...OLD_REST, url }, call("extended-card"));
      assert.equal(request.url, "https://a.example/x/v1/card");
    }
  });

  it("carries the key of its idempotency and the event to resume after", () => {
    const more = { idempotencyKey: "一次", lastEventId: "9" };
    const { headers } = a2aRequest(REST, { ...call("subscribe", { id: "t" }), ...more });
    assert.deepEqual([headers["idempotency-key"], headers["last-event-id"]], ["一次", "9"]);
    assert.match(headers["accept"] ?? "", /^text\/event-stream, /);
  });

  it("is none for what the dialect does not have", () => {
    for (const at of [{ ...RPC, dialect: "0.3" } as const, OLD_REST]) {
      assert.throws(() => a2aRequest(at, call("list")), { a2a: "UnsupportedOperation" });
    }
  });
});

describe("an answer of an agent", () => {
  const rpc = (status: number, envelope: object): ReturnType<typeof readA2aAnswer> =>
    readA2aAnswer(RPC, GET, { status, text: JSON.stringify({ jsonrpc: "2.0", ...envelope }) });
  const rest = (status: number, text: string, at = REST): ReturnType<typeof readA2aAnswer> =>
    readA2aAnswer(at, GET, { status, text });

  it("is the result in 1.0", () => {
    assert.deepEqual(rpc(200, { result: TASK, id: "7" }), { result: TASK });
    assert.deepEqual(rpc(200, { result: TASK, id: 7 }), { result: TASK });
    assert.deepEqual(rpc(200, { result: TASK }), { result: TASK });
    assert.deepEqual(rest(200, JSON.stringify(TASK)), { result: TASK });
    const old = { id: "t", status: { state: "TASK_STATE_CANCELLED" } };
    const read = rest(200, JSON.stringify(old), OLD_REST);
    assert.deepEqual(read, { result: { id: "t", status: { state: "TASK_STATE_CANCELED" } } });
    const deleted = readA2aAnswer(REST, { operation: "push-delete", id: "7" }, { status: 204, text: "" });
    assert.deepEqual(deleted, { result: {} });
  });

  it("is the error that the agent named, with any status", () => {
    const error = { code: -32001, message: "没有" };
    for (const read of [
      rpc(200, { error }),
      rpc(404, { error }),
      rest(404, JSON.stringify(error), OLD_REST),
      rest(404, JSON.stringify({ error: { ...error, details: [] } })),
    ]) {
      assert.ok("error" in read);
      assert.equal(read.error.code, "not_found");
    }
  });

  it("is none where a proxy answers instead", () => {
    assert.deepEqual(rpc(502, {}), { unreadable: "status" });
    assert.deepEqual(rpc(200, {}), { unreadable: "body" });
    assert.deepEqual(rest(502, '{"message":"Bad gateway"}'), { unreadable: "status" });
    assert.deepEqual(rest(200, "<html>"), { unreadable: "body" });
  });

  it("is invalid for another request, and without what callers rely on", () => {
    for (const [read, words] of [
      [rpc(200, { result: TASK, id: "8" }), /^answered another request: id "8", asked with "7"$/],
      [rpc(200, { result: { id: "t" } }), /^answered "get" with \{"id":"t"\}, which is not A2A 1\.0$/],
      [rest(200, "{}"), /which is not A2A 1\.0$/],
    ] as const) {
      assert.ok("invalid" in read);
      assert.match(read.invalid, words);
    }
  });

  it("may say that the agent does not know the method", () => {
    for (const [code, isUnknown] of [
      [-32601, true],
      [-32009, true],
      [-32001, false],
    ] as const) {
      const read = rpc(200, { error: { code, message: "no" } });
      assert.equal(isUnknownMethod("error" in read && read.error), isUnknown);
    }
  });
});

describe("an event of an agent", () => {
  const update = { statusUpdate: { taskId: "t", contextId: "c", status: TASK.status } };

  it("is read in its binding", () => {
    const data = JSON.stringify({ jsonrpc: "2.0", id: "7", result: update });
    assert.deepEqual(readA2aEvent(RPC, { event: "message", data }), { event: update });
    assert.deepEqual(readA2aEvent(REST, { event: "message", data: JSON.stringify(update) }), {
      event: update,
    });
  });

  it("may be an error", () => {
    const error = { code: -32001, message: "没有" };
    for (const [at, event] of [
      [RPC, "message"],
      [REST, "message"],
      [REST, "error"],
    ] as const) {
      const read = readA2aEvent(at, { event, data: JSON.stringify({ error }) });
      assert.ok("error" in read);
      assert.equal(read.error.code, "not_found");
    }
  });

  it("is invalid without an envelope or a content of A2A", () => {
    for (const at of [RPC, REST]) {
      for (const data of ["{half", "[]", '{"result":{"nothing":1}}']) {
        assert.ok("invalid" in readA2aEvent(at, { event: "message", data }), data);
      }
    }
  });
});
