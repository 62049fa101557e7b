import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2aError } from "@a2a-relay/protocol";
import { rpcStream, startWireAgent, streamOf } from "../../testing/wire-agent.ts";
import { type WireAnswer, WireServer } from "../../testing/wire-server.ts";
import { A2AClient } from "./a2a-client.ts";
import type { A2AClientOptions } from "./a2a-client-options.ts";

const TASK = { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } };

/** Sends once to an agent that answers so, and gives the error. */
async function errorOf(
  answer: WireAnswer | { readonly result: unknown },
  options: A2AClientOptions = {},
): Promise<Error> {
  await using agent = await startWireAgent({ SendMessage: () => answer });
  const client = new A2AClient({ url: agent.url, timeoutMs: 5_000, ...options });
  try {
    await client.sendMessage("你好");
  } catch (reason) {
    assert.ok(reason instanceof Error);
    return reason;
  }
  throw new Error("it was taken for an answer");
}

function assertInvalid(error: Error, message: RegExp): void {
  assert.ok(error instanceof A2aError, String(error));
  assert.equal(error.a2a, "InvalidAgentResponse");
  assert.match(error.message, message);
}

describe("an answer that is no A2A", () => {
  it("is named with its address, status, type and beginning", async () => {
    const html = `<!doctype html><title>你好</title>${"x".repeat(10_000)}`;
    const error = await errorOf({ text: html });
    assertInvalid(
      error,
      /^POST http:\/\/127\.0\.0\.1:\d+\/rpc answered 200 with text\/html "<!doctype html>/,
    );
    assert.match(error.message, /is this the address of an A2A agent\?$/);
    assert.ok(error.message.length < 400);
  });

  it("is refused whatever is wrong with it", async () => {
    const wrong: readonly (WireAnswer | { readonly result: unknown })[] = [
      { json: [] },
      { json: null },
      { json: "text" },
      { json: { jsonrpc: "2.0", id: "1" } },
      { headers: { "content-type": "application/json" }, text: '{"jsonrpc":"2.0","result":{"task"' },
      { result: null },
      { result: [] },
      { result: 42 },
      { result: {} },
      { result: { task: { id: 7 } } },
      { result: { task: { id: "t" } } },
      { result: { task: { ...TASK, status: "done" } } },
      { result: { message: { parts: "none" } } },
      { status: 404, text: "not here" },
    ];
    for (const answer of wrong) assertInvalid(await errorOf(answer), /127\.0\.0\.1/);
  });

  it("is refused when it answers another request", async () => {
    const error = await errorOf({ json: { jsonrpc: "2.0", id: "other", result: { task: TASK } } });
    assertInvalid(error, /answered another request: id "other"/);
  });

  it("is an error of the agent also with an unusual status", async () => {
    const error = { code: -32001, message: "Task not found" };
    const raised = await errorOf({ status: 404, json: { jsonrpc: "2.0", id: null, error } });
    assert.ok(raised instanceof A2aError);
    assert.equal(raised.a2a, "TaskNotFound");
  });

  it("is said to be away, forbidden or too much where its status says so", async () => {
    for (const [status, code] of [
      [403, "permission_denied"],
      [413, "too_large"],
      [429, "resource_exhausted"],
      [503, "unavailable"],
    ] as const) {
      const error = await errorOf({ status, text: "<html>" });
      assert.equal((error as A2aError).code, code);
      assert.match(error.message, new RegExp(`/rpc answered ${status} `));
    }
  });

  it("is not read further than is allowed", async () => {
    const endless: WireAnswer = {
      headers: { "content-type": "application/json" },
      stream: async (write) => {
        for (let sent = 0; sent < 64; sent += 1) {
          write("x".repeat(64 * 1024));
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
        }
        return "silence" as const;
      },
    };
    const error = await errorOf(endless, { answerBytesMax: 100_000 });
    assert.equal((error as A2aError).code, "too_large");
    assert.match(error.message, /more than 100000 bytes; raise `answerBytesMax`/);
  });

  it("is waited for no longer than is allowed", async () => {
    const error = await errorOf("silence", { timeoutMs: 50 });
    assert.equal((error as A2aError).code, "unavailable");
    assert.match(
      error.message,
      /no answer within 50 ms; raise `timeoutMs`, or send with `returnImmediately`/,
    );
  });

  it("may come on a stream as well", async () => {
    const streams: readonly WireAnswer[] = [
      rpcStream([["", { nothing: 1 }]], "end"),
      { stream: streamOf([["", "text"]], "end") },
      { stream: (write) => (write("data: {half\n\n"), "end") },
      rpcStream([], "end"),
      { text: "<html>" },
    ];
    for (const answer of streams) {
      await using agent = await startWireAgent({ SendStreamingMessage: () => answer });
      const events = new A2AClient(agent.url).streamMessage("你好");
      await assert.rejects(events.next(), { a2a: "InvalidAgentResponse" });
    }
  });

  it("may be an event without an end", async () => {
    await using agent = await startWireAgent({
      SendStreamingMessage: () => ({
        stream: (write) => {
          write(`data: ${"x".repeat(10_000)}`);
          return "silence";
        },
      }),
    });
    const client = new A2AClient({ url: agent.url, answerBytesMax: 5_000 });
    await assert.rejects(client.streamMessage("你好").next(), {
      code: "too_large",
      message: /\/rpc sends an event/,
    });
  });

  it("may be no answer at all", async () => {
    await using agent = await startWireAgent({ SendMessage: () => "reset_midway" });
    await assert.rejects(new A2AClient(agent.url).sendMessage("你好"), {
      code: "unavailable",
      message: /\/rpc failed/,
    });
    assert.equal(
      agent.requests.filter(({ method }) => method === "POST").length,
      1,
      "a send is not repeated",
    );
    await agent.close();
    await assert.rejects(new A2AClient({ url: agent.url, retries: 1, retryDelayMs: 1 }).getAgentCard(), {
      code: "unavailable",
      message: /ECONNREFUSED.*is the agent running/,
    });
  });

  it("is asked for again where the question only reads", async () => {
    let asked = 0;
    await using agent = await startWireAgent({
      GetTask: () => {
        asked += 1;
        if (asked === 1) return "reset";
        return asked === 2 ? { status: 503, text: "soon" } : { result: TASK };
      },
    });
    const client = new A2AClient({ url: agent.url, retryDelayMs: 1 });
    assert.equal((await client.getTask("t")).id, "t");
    assert.equal(asked, 3);
  });
});

describe("a redirect", () => {
  const HEADERS = { apiKey: "s3cret" };

  it("is followed on the same host, with all that was sent", async () => {
    await using agent = await WireServer.start(({ path, body, headers }) => {
      if (path === "/old/rpc") return { status: 308, headers: { location: "/new/rpc" }, text: "" };
      if (path !== "/new/rpc") return { status: 404, text: "" };
      assert.equal(headers.authorization, "Bearer s3cret");
      return { json: { jsonrpc: "2.0", id: body["id"], result: { task: TASK } } };
    });
    const client = new A2AClient({ url: `${agent.url}/old/rpc`, dialect: "1.0", ...HEADERS });
    assert.equal((await client.sendMessage("你好")).task?.id, "t");
  });

  it("to another host is not followed with credentials", async () => {
    await using other = await WireServer.start(() => ({ json: {} }));
    await using agent = await WireServer.start(() => ({
      status: 307,
      headers: { location: `${other.url}/steal` },
      text: "",
    }));
    for (const credentials of [HEADERS, { headers: { "x-api-key": "s3cret" } }]) {
      const client = new A2AClient({ url: agent.url, ...credentials });
      await assert.rejects(client.getAgentCard(), {
        a2a: "InvalidAgentResponse",
        message: /redirects to ".*\/steal", another host, to which your credentials are not shown/,
      });
    }
    assert.equal(other.requests.length, 0);
    await assert.rejects(new A2AClient(agent.url).getAgentCard(), /no agent card/);
    assert.equal(other.requests.length, 2);
  });

  it("that would lose what is sent, or goes in circles, is refused", async () => {
    await using agent = await WireServer.start(({ path, method }) =>
      method === "POST"
        ? { status: 302, headers: { location: "/x" }, text: "" }
        : { status: path === "/c/agent.json" ? 302 : 404, headers: { location: "/c/agent.json" }, text: "" },
    );
    const client = new A2AClient({ url: agent.url, dialect: "1.0" });
    await assert.rejects(client.sendMessage("你好"), /with 302, which would lose what is sent/);
    await assert.rejects(new A2AClient(`${agent.url}/c/agent.json`).getAgentCard(), /after 3 redirects/);
  });
});
