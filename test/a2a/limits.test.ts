import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { GRPC_STATUSES, LIMITS } from "@a2a-relay/protocol";
import { askGrpc, BINDINGS, isRefusal } from "../support/a2a-bindings.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { userMessage } from "../support/sdk-client.ts";

const AGENT = "zhiwei";
const PATH = `/agents/${AGENT}/a2a`;
const NOW = { configuration: { returnImmediately: true } };

/** What the relay writes around a text when it keeps it, which counts too. */
const ENVELOPE_BYTES = 1_500;

/** A send whose body on this binding has just so many bytes. */
function sendOf(bytes: number, bodyOf: (params: object) => string): string {
  const empty = Buffer.byteLength(bodyOf({ ...userMessage(""), ...NOW }));
  return bodyOf({ ...userMessage("x".repeat(bytes - empty)), ...NOW });
}

const HTTP_BODIES = [
  {
    name: "JSON-RPC",
    path: PATH,
    bodyOf: (params: object): string =>
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params }),
  },
  { name: "REST", path: `${PATH}/message:send`, bodyOf: (params: object): string => JSON.stringify(params) },
  {
    name: "REST 0.3",
    path: `${PATH}/v1/message:send`,
    bodyOf: (params: object): string => JSON.stringify(params),
  },
] as const;

describe("the limits of A2A requests", { timeout: 30_000 }, () => {
  let relay: A2aRelay;
  before(async () => {
    relay = await A2aRelay.open();
    await relay.register(AGENT);
  });
  after(() => relay[Symbol.asyncDispose]());

  /** One after the other over the same connection. */
  async function overOneConnection(calls: readonly (readonly [path: string, body: string])[]) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const answers: { readonly status: number; readonly text: string; readonly port: number | undefined }[] =
      [];
    for (const [path, body] of calls) {
      const { promise, resolve, reject } = Promise.withResolvers<(typeof answers)[number]>();
      const headers = { "content-type": "application/json" };
      const sent = request(`${relay.url}${path}`, { method: "POST", agent, headers }, (answer) => {
        const port = answer.socket.localPort;
        text(answer).then((said) => resolve({ status: answer.statusCode ?? 0, text: said, port }), reject);
      });
      sent.on("error", reject);
      sent.end(body);
      answers.push(await promise);
    }
    agent.destroy();
    return answers;
  }

  for (const { name, path, bodyOf } of HTTP_BODIES) {
    it(`take a body of nearly the limit, and say of one beyond that it is too large, over ${name}`, async () => {
      const [most, more, next] = await overOneConnection([
        [path, sendOf(LIMITS.bodyBytesMax - ENVELOPE_BYTES, bodyOf)],
        [path, sendOf(LIMITS.bodyBytesMax + 1, bodyOf)],
        [path, sendOf(2_000, bodyOf)],
      ]);
      assert.equal(most?.status, 200, most?.text.slice(0, 300));
      assert.equal(more?.status, 413);
      const { error, message = error?.message } = JSON.parse(more.text) as {
        readonly error?: { readonly message: string };
        readonly message?: string;
      };
      assert.match(message ?? "", new RegExp(String(LIMITS.bodyBytesMax)));
      assert.equal(next?.status, 200, next?.text.slice(0, 300));
      assert.ok(next.port, "and the next one is answered");
    });
  }

  it("take a message of nearly the limit over gRPC, and refuse a larger one with its status", async () => {
    const send = (bytes: number) =>
      askGrpc(relay.grpcAddress, {
        operation: "send",
        params: { ...userMessage("x".repeat(bytes)), ...NOW, tenant: AGENT },
      });
    const most = await send(LIMITS.bodyBytesMax - ENVELOPE_BYTES);
    assert.ok(!isRefusal(most), JSON.stringify(most).slice(0, 300));
    const more = await send(LIMITS.bodyBytesMax + 1);
    assert.ok(isRefusal(more));
    assert.equal(more.code, GRPC_STATUSES.RESOURCE_EXHAUSTED);
    assert.ok(!isRefusal(await send(10)), "and the next one is answered");
  });

  for (const binding of BINDINGS) {
    const send = (params: object) =>
      binding.ask(relay, AGENT, { operation: "send", params: { ...params, ...NOW } });

    it(`take as many parts as a message may have, and no more, over ${binding.name}`, async () => {
      const parts = Array.from({ length: LIMITS.partsMax }, (_, index) => ({ text: `第${index}份` }));
      assert.ok(!isRefusal(await send(userMessage("", { parts }))));
      const more = await send(userMessage("", { parts: [...parts, { text: "太多" }] }));
      assert.ok(isRefusal(more));
      assert.match(more.message, /parts/);
    });

    it(`refuse JSON that is too deep, over ${binding.name}`, async () => {
      const deep = (depth: number): unknown => (depth === 0 ? "底" : [deep(depth - 1)]);
      assert.ok(!isRefusal(await send(userMessage("", { parts: [{ data: deep(30) }] }))));
      const refused = await send(userMessage("", { parts: [{ data: deep(LIMITS.jsonDepthMax + 10) }] }));
      assert.ok(isRefusal(refused), JSON.stringify(refused).slice(0, 200));
    });

    it(`refuse ids that are too long, over ${binding.name}`, async () => {
      const long = "长".repeat(LIMITS.idCharsMax + 1);
      const context = await send(userMessage("x", { contextId: long }));
      assert.ok(isRefusal(context));
      assert.match(context.message, /contextId/);
      const task = await send(userMessage("x", { taskId: long }));
      assert.ok(isRefusal(task));
    });
  }
});
