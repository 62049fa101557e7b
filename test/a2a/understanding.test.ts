import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { A2aTask } from "@a2a-relay/protocol";
import { A2aEvents } from "../support/a2a-events.ts";
import { A2aRelay, type WireAnswer } from "../support/a2a-relay.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";

const AGENT = "zhiwei";
const PATH = `/agents/${AGENT}/a2a`;

interface RpcAnswer {
  readonly id: unknown;
  readonly result?: Readonly<Record<string, unknown>> & {
    readonly task?: { readonly id: string; readonly contextId: string };
  };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: readonly object[] };
}

interface WireTask {
  readonly data: { readonly task: A2aTask };
}

let relay: A2aRelay;
before(async () => {
  relay = await A2aRelay.open();
  await relay.register(AGENT);
});
after(() => relay[Symbol.asyncDispose]());

let count = 0;
function message(text: string, more: object = {}): Readonly<Record<string, unknown>> {
  count += 1;
  return { messageId: `m-${count}`, role: "ROLE_USER", parts: [{ text }], ...more };
}

const NOW = { returnImmediately: true };

function rpc(
  method: string,
  params: object,
  headers?: Readonly<Record<string, string>>,
  path = PATH,
): Promise<WireAnswer> {
  return relay.call("POST", path, { jsonrpc: "2.0", id: 7, method, params }, headers);
}

function read({ json }: WireAnswer): RpcAnswer {
  return json as RpcAnswer;
}

async function sendNow(text: string): Promise<{ readonly id: string; readonly contextId: string }> {
  const { result } = read(await rpc("SendMessage", { message: message(text), configuration: NOW }));
  return result?.task ?? assert.fail("no task");
}

describe("the version that a caller names", () => {
  for (const version of ["1.0", "1.0.1", "1", "0.3", "0.3.0", "0.2", "0.1", ""]) {
    it(`may be "${version}", and the method decides the dialect`, async () => {
      const answer = read(
        await rpc(
          "SendMessage",
          { message: message("版本"), configuration: NOW },
          { "a2a-version": version },
        ),
      );
      assert.ok(answer.result?.task, JSON.stringify(answer));
      const older = { role: "user", kind: "message", messageId: "m", parts: [{ kind: "text", text: "旧" }] };
      const params = { message: older, configuration: { blocking: false } };
      const { result } = read(await rpc("message/send", params, { "a2a-version": version }));
      assert.equal(result?.["kind"], "task");
    });
  }

  for (const version of ["9.9", "2.0", "0.4", "one", "1.0;x"]) {
    it(`is refused when it is "${version}", in the header or in the query`, async () => {
      const params = { message: message("x"), configuration: NOW };
      const query = `?A2A-Version=${encodeURIComponent(version)}`;
      for (const answer of [
        await rpc("SendMessage", params, { "a2a-version": version }),
        await rpc("SendMessage", params, {}, `${PATH}${query}`),
      ]) {
        assert.equal(answer.status, 200);
        assert.deepEqual([read(answer).id, read(answer).error?.code], [7, -32009]);
      }
      for (const answer of [
        await relay.call("POST", `${PATH}/message:send`, params, { "a2a-version": version }),
        await relay.call("POST", `${PATH}/message:send${query}`, params),
      ]) {
        assert.equal(answer.status, 400);
        assert.match(answer.text, /VERSION_NOT_SUPPORTED/);
      }
    });
  }

  it("in the query is as good as in the header", async () => {
    const { status, json } = await relay.call("GET", `${PATH}/tasks?A2A-Version=1.0&pageSize=1`);
    assert.equal(status, 200);
    assert.equal((json as { readonly pageSize: number }).pageSize, 1);
  });
});

describe("an address", () => {
  it("works with a slash at its end, for JSON-RPC and for REST", async () => {
    const answer = await rpc("SendMessage", { message: message("斜线"), configuration: NOW }, {}, `${PATH}/`);
    assert.ok(read(answer).result?.task, answer.text);
    const listed = await relay.call("GET", `${PATH}/tasks/`);
    assert.equal(listed.status, 200, listed.text);
  });

  it("of a subscription takes GET and POST", async () => {
    const { id } = await sendNow("看着");
    for (const method of ["GET", "POST"] as const) {
      await using stream = await A2aEvents.open(relay.url, { method, path: `${PATH}/tasks/${id}:subscribe` });
      const [first] = await stream.take(1);
      assert.equal((first as WireTask).data.task.id, id);
    }
  });

  it("that REST does not know is refused as A2A refuses", async () => {
    for (const [method, path] of [
      ["GET", "nothing"],
      ["DELETE", "tasks/x"],
      ["POST", "message:other"],
      ["GET", "message:send"],
    ] as const) {
      const { status, json } = await relay.call(
        method,
        `${PATH}/${path}`,
        method === "POST" ? {} : undefined,
      );
      assert.equal(status, 404, `${method} ${path}`);
      assert.equal((json as { readonly error: { readonly status: string } }).error.status, "UNIMPLEMENTED");
    }
  });
});

describe("the type of a body", () => {
  const body = JSON.stringify({ message: message("类型"), configuration: NOW });
  const send = (headers: Readonly<Record<string, string>>) =>
    relay.call("POST", `${PATH}/message:send`, body, headers);

  it("is JSON unless the caller names A2A's own", async () => {
    const plain = await send({ "content-type": "application/json" });
    assert.match(plain.headers.get("content-type") ?? "", /^application\/json/);
    for (const headers of [
      { "content-type": "application/a2a+json" },
      { "content-type": "application/a2a+json; charset=utf-8" },
      { "content-type": "application/json", accept: "application/a2a+json" },
    ]) {
      const answer = await send(headers);
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.headers.get("content-type") ?? "", /^application\/a2a\+json/);
      assert.ok((answer.json as { readonly task?: object }).task);
    }
    const refused = await relay.call("GET", `${PATH}/tasks/none`, undefined, {
      accept: "application/a2a+json",
    });
    assert.equal(refused.status, 404);
    assert.match(refused.headers.get("content-type") ?? "", /^application\/a2a\+json/);
  });

  it("is taken over JSON-RPC too", async () => {
    const answer = await rpc(
      "SendMessage",
      { message: message("x"), configuration: NOW },
      { "content-type": "application/a2a+json" },
    );
    assert.ok(read(answer).result?.task, answer.text);
  });

  it("is refused when it is another", async () => {
    for (const type of ["text/plain", "application/xml", "multipart/form-data; boundary=x"]) {
      const answer = await send({ "content-type": type });
      assert.equal(answer.status, 415, `${type}: ${answer.text}`);
      assert.ok((answer.json as { readonly error?: object }).error, answer.text);
      const overRpc = await rpc("SendMessage", {}, { "content-type": type });
      assert.equal(read(overRpc).error?.code, -32005, overRpc.text);
    }
  });
});

describe("an envelope of JSON-RPC", () => {
  const envelopes: readonly (readonly [what: string, body: unknown, code: number, id: unknown])[] = [
    ["that is no JSON", "{", -32700, null],
    ["that is empty", "", -32700, null],
    ["that is a batch", [{ jsonrpc: "2.0", id: 1, method: "GetTask", params: {} }], -32600, null],
    ["that is an empty batch", [], -32600, null],
    ["that is a text", '"SendMessage"', -32600, null],
    ["that is null", "null", -32600, null],
    ["without a version", { id: 3, method: "GetTask", params: { id: "x" } }, -32600, 3],
    ["of another version", { jsonrpc: "1.0", id: 3, method: "GetTask", params: { id: "x" } }, -32600, 3],
    [
      "without an id, which is a notification",
      { jsonrpc: "2.0", method: "GetTask", params: { id: "x" } },
      -32600,
      null,
    ],
    [
      "whose id is an object",
      { jsonrpc: "2.0", id: {}, method: "GetTask", params: { id: "x" } },
      -32600,
      null,
    ],
    ["without a method", { jsonrpc: "2.0", id: "a" }, -32600, "a"],
    ["with an unknown method", { jsonrpc: "2.0", id: "a", method: "tasks/steal", params: {} }, -32601, "a"],
    ["with params in a list", { jsonrpc: "2.0", id: "a", method: "GetTask", params: ["x"] }, -32602, "a"],
    ["without params", { jsonrpc: "2.0", id: "a", method: "GetTask" }, -32602, "a"],
    ["without a message", { jsonrpc: "2.0", id: "a", method: "SendMessage", params: {} }, -32602, "a"],
    ["without a task's id", { jsonrpc: "2.0", id: "a", method: "GetTask", params: {} }, -32602, "a"],
  ];
  for (const [what, body, code, id] of envelopes) {
    it(`${what} is answered with ${code}`, async () => {
      const answer = await relay.call("POST", PATH, body);
      assert.deepEqual([read(answer).error?.code, read(answer).id], [code, id], answer.text);
      assert.equal(answer.status, 200);
    });
  }

  for (const [what, more] of [
    ["no parts", { parts: [] }],
    ["parts that are a text", { parts: "hi" }],
    ["a part that is a text", { parts: ["hi"] }],
    ["the role of an agent", { role: "ROLE_AGENT" }],
    ["no role", { role: undefined }],
    ["no id", { messageId: undefined }],
    ["a context that is far too long", { contextId: "长 ".repeat(100) }],
  ] as const) {
    it(`with a message that has ${what} is answered with -32602`, async () => {
      const { error } = read(await rpc("SendMessage", { message: message("x", more), configuration: NOW }));
      assert.equal(error?.code, -32602);
      const rest = await relay.call("POST", `${PATH}/message:send`, { message: message("x", more) });
      assert.equal(rest.status, 400, rest.text);
    });
  }
});

describe("what a message is made of", () => {
  const work = () => MailboxAgent.next(relay, AGENT);
  const drain = async () => {
    for (;;) {
      const { messages } = (await relay.ok("POST", `/mailbox/${AGENT}/lease`, { max: 100 })) as {
        readonly messages: readonly {
          readonly message_id: string;
          readonly lease: { readonly id: string };
        }[];
      };
      if (messages.length === 0) return;
      const leases = messages.map(({ message_id, lease }) => ({ message_id, lease_id: lease.id }));
      await relay.ok("POST", `/mailbox/${AGENT}/ack`, { leases });
    }
  };
  before(drain);

  it("may belong to a context of any name, which is kept and found again as it was written", async () => {
    for (const contextId of ["user/123", "a b", "会话 1", "ctx~x", "..", "c-1"]) {
      const sent = await rpc("SendMessage", { message: message("x", { contextId }), configuration: NOW });
      const { task } = read(sent).result ?? {};
      assert.equal(task?.contextId, contextId);
      const { result } = read(await rpc("ListTasks", { contextId }));
      const { tasks } = result as unknown as { readonly tasks: readonly A2aTask[] };
      assert.deepEqual(
        tasks.map((each) => [each.id, each.contextId]),
        [[task.id, contextId]],
      );
      const more = { taskId: task.id, contextId };
      const added = read(await rpc("SendMessage", { message: message("y", more), configuration: NOW }));
      assert.equal(added.error, undefined);
    }
    await drain();
  });

  it("may be said in snake_case", async () => {
    const params = {
      message: {
        message_id: "蛇",
        role: "ROLE_USER",
        context_id: "c-snake",
        parts: [{ raw: "eA==", media_type: "a/b" }],
      },
      configuration: { return_immediately: true, history_length: 1, accepted_output_modes: ["text/plain"] },
    };
    const { task } = read(await rpc("SendMessage", params)).result ?? {};
    assert.equal(task?.contextId, "c-snake");
    const { result } = read(await rpc("GetTask", { id: task.id, history_length: 1 }));
    const [asked] = (result as unknown as A2aTask).history ?? [];
    assert.deepEqual([asked?.["messageId"], asked?.["parts"]], ["蛇", [{ raw: "eA==", mediaType: "a/b" }]]);
    await (await work()).complete();
  });

  it("reaches the agent with what only A2A has words for", async () => {
    const extensions = ["https://extensions.example/tone/v1"];
    const metadata = { tone: "dry" };
    const params = {
      message: message("带扩展", { extensions, metadata, "x-own": [1] }),
      metadata: { of: "request" },
      configuration: NOW,
    };
    await rpc("SendMessage", params);
    const taken = await work();
    const { a2a_message: more, a2a_metadata } = taken.message as Record<string, Record<string, unknown>>;
    assert.deepEqual(
      [more?.["extensions"], more?.["metadata"], more?.["x-own"]],
      [extensions, metadata, [1]],
    );
    assert.deepEqual(a2a_metadata, { of: "request" });
    await taken.complete();
  });

  it("comes back from the agent with what it added", async () => {
    const { id } = await sendNow("回话");
    const a2a_message = { messageId: "答-1", extensions: ["urn:x"], metadata: { a: 1 }, own: null };
    await (
      await work()
    ).complete({ parts: [{ text: "答", metadata: { b: 2 }, "x-part": true }], a2a_message });
    const { result } = read(await rpc("GetTask", { id }));
    const said = (result as unknown as A2aTask).status.message ?? assert.fail();
    assert.deepEqual(
      [said["messageId"], said["extensions"], said["metadata"], said["own"]],
      ["答-1", ["urn:x"], { a: 1 }, null],
    );
    assert.deepEqual(said["parts"], [{ text: "答", metadata: { b: 2 }, "x-part": true }]);
  });

  const answers: readonly (readonly [form: string, parts: readonly object[]])[] = [
    [
      "1.0",
      [{ text: "文" }, { url: "https://f.example/a", mediaType: "a/b", filename: "a" }, { data: { n: 1 } }],
    ],
    [
      "0.3",
      [
        { kind: "text", text: "文" },
        { kind: "file", file: { uri: "https://f.example/a", mimeType: "a/b", name: "a" } },
        { kind: "data", data: { n: 1 } },
      ],
    ],
    [
      "0.1",
      [
        { type: "text", text: "文" },
        { type: "file", file: { uri: "https://f.example/a", mimeType: "a/b", name: "a" } },
        { type: "data", data: { n: 1 } },
      ],
    ],
  ];
  for (const [form, parts] of answers) {
    it(`is understood by callers of every dialect when the agent answers in the form of ${form}`, async () => {
      const older = { role: "user", kind: "message", messageId: "m", parts: [{ kind: "text", text: "问" }] };
      const asked = read(
        await rpc(
          "message/send",
          { message: older, configuration: { blocking: false } },
          { "a2a-version": "0.2" },
        ),
      );
      const id = asked.result?.["id"] as string;
      const taken = await work();
      assert.equal(taken.text, "问");
      await taken.complete({ parts });
      const partsOf = (answer: WireAnswer): unknown => {
        const { result = answer.json } = read(answer);
        const { message: said } =
          (result as Readonly<Record<string, Record<string, Readonly<Record<string, unknown>>>>>)["status"] ??
          {};
        return said?.["parts"] ?? said?.["content"];
      };
      const [plain, kind, type] = answers.map(([, written]) => written);
      assert.deepEqual(partsOf(await rpc("GetTask", { id })), plain);
      assert.deepEqual(partsOf(await rpc("tasks/get", { id }, { "a2a-version": "0.2" })), kind);
      assert.deepEqual(partsOf(await rpc("tasks/get", { id }, { "a2a-version": "0.3" })), kind);
      assert.deepEqual(partsOf(await rpc("tasks/get", { id }, { "a2a-version": "0.1" })), type);
      assert.deepEqual(partsOf(await relay.call("GET", `${PATH}/tasks/${id}`)), plain);
      assert.deepEqual(partsOf(await relay.call("GET", `${PATH}/v1/tasks/${id}`)), [
        { text: "文" },
        { file: { fileWithUri: "https://f.example/a", mimeType: "a/b", name: "a" } },
        { data: { data: { n: 1 } } },
      ]);
    });
  }

  it("may mix the forms of all dialects in one message", async () => {
    const parts = [{ text: "甲" }, { kind: "text", text: "乙" }, { type: "text", text: "丙" }];
    await rpc("SendMessage", { message: message("", { parts }), configuration: NOW });
    const taken = await work();
    assert.equal(taken.text, "甲\n乙\n丙");
    await taken.complete();
  });
});
