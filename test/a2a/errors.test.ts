import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  A2A_ERROR_NAMES,
  A2A_ERRORS,
  type A2aErrorName,
  GRPC_STATUSES,
  LIMITS,
  RELAY_ERRORS_ON_A2A,
} from "@a2a-relay/protocol";
import { type Asked, type Binding, BINDINGS, isRefusal, type Refusal } from "../support/a2a-bindings.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";
import { userMessage } from "../support/sdk-client.ts";

const ZHIWEI = "zhiwei";
/** Takes text only, pushes nothing, and asks its callers to know an extension. */
const PICKY = "picky";
const EXTENSION = "https://extensions.example/must/v1";
const NOW = { configuration: { returnImmediately: true } };

async function refusal(binding: Binding, relay: A2aRelay, agentId: string, asked: Asked): Promise<Refusal> {
  const answer = await binding.ask(relay, agentId, asked);
  assert.ok(isRefusal(answer), `not refused over ${binding.name}: ${JSON.stringify(answer)}`);
  return answer;
}

/** What the binding must say for this row of A2A's table. */
function expected(
  name: A2aErrorName,
  binding: Binding,
): Pick<Refusal, "code" | "domain" | "httpStatus" | "reason"> {
  const { code, httpStatus, grpc, reason } = A2A_ERRORS[name];
  const info = { reason, domain: "a2a-protocol.org" };
  if (binding.name === "JSON-RPC") return { code, httpStatus: 200, ...info };
  if (binding.name === "REST") return { code: httpStatus, httpStatus, ...info };
  return { code: GRPC_STATUSES[grpc], ...info };
}

describe("the errors of A2A", { timeout: 30_000 }, () => {
  let relay: A2aRelay;
  let doneId: string;
  let strangeId: string;
  before(async () => {
    relay = await A2aRelay.open();
    await relay.register(ZHIWEI, { agent_card: { capabilities: { extendedAgentCard: true } } });
    await relay.register(PICKY, {
      agent_card: {
        defaultInputModes: ["text/plain"],
        capabilities: {
          streaming: false,
          pushNotifications: false,
          extensions: [{ uri: EXTENSION, required: true }],
        },
      },
    });
    doneId = await answered({ text: "好" });
    strangeId = await answered({ text: "好", parts: [{ smell: "rose" }] });
  });
  after(() => relay[Symbol.asyncDispose]());

  const answered = async (said: object): Promise<string> => {
    const body = { ...userMessage("做完"), ...NOW };
    const { task } = (await relay.ok("POST", `/agents/${ZHIWEI}/a2a/message:send`, body)) as {
      readonly task: { readonly id: string };
    };
    await (await MailboxAgent.next(relay, ZHIWEI)).complete(said);
    return task.id;
  };

  const rows: Partial<Record<A2aErrorName, () => readonly [agentId: string, asked: Asked]>> = {
    TaskNotFound: () => [ZHIWEI, { operation: "get", params: { id: "nothing-here" } }],
    TaskNotCancelable: () => [ZHIWEI, { operation: "cancel", params: { id: doneId } }],
    PushNotificationNotSupported: () => [
      PICKY,
      { operation: "push-create", params: { taskId: doneId, url: "https://hooks.example/" } },
    ],
    UnsupportedOperation: () => [ZHIWEI, { operation: "subscribe", params: { id: doneId } }],
    ContentTypeNotSupported: () => [
      PICKY,
      {
        operation: "send",
        params: userMessage("", { parts: [{ raw: "eA==", mediaType: "image/png" }] }),
        headers: { "a2a-extensions": EXTENSION },
      },
    ],
    InvalidAgentResponse: () => [ZHIWEI, { operation: "get", params: { id: strangeId } }],
    ExtendedAgentCardNotConfigured: () => [ZHIWEI, { operation: "extended-card", params: {} }],
    ExtensionSupportRequired: () => [PICKY, { operation: "send", params: userMessage("x") }],
    VersionNotSupported: () => [
      ZHIWEI,
      { operation: "get", params: { id: doneId }, headers: { "a2a-version": "9.9" } },
    ],
  };

  for (const binding of BINDINGS) {
    for (const [name, triggerOf] of Object.entries(rows)) {
      it(`include ${name}, over ${binding.name}`, async () => {
        const [agentId, asked] = triggerOf();
        const { message, ...said } = await refusal(binding, relay, agentId, asked);
        assert.deepEqual({ ...said }, expected(name as A2aErrorName, binding), message);
        assert.match(message, / /, "a sentence for people");
      });
    }

    it(`include UnsupportedOperation for an agent whose card switches streams off, over ${binding.name}`, async () => {
      const asked: Asked = {
        operation: "stream",
        params: userMessage("x"),
        headers: { "a2a-extensions": EXTENSION },
      };
      const { reason } = await refusal(binding, relay, PICKY, asked);
      assert.equal(reason, "UNSUPPORTED_OPERATION");
    });

    it(`include UnsupportedOperation for a card that does not exist, over ${binding.name}`, async () => {
      const { reason } = await refusal(binding, relay, PICKY, { operation: "extended-card", params: {} });
      assert.equal(reason, "UNSUPPORTED_OPERATION");
    });

    it(`name an id that is cut short without half a character at its end, over ${binding.name}`, async () => {
      const id = `${"长".repeat(LIMITS.idCharsMax - 1)}😀`;
      for (const operation of ["get", "subscribe"] as const) {
        const { reason, message } = await refusal(binding, relay, ZHIWEI, { operation, params: { id } });
        assert.equal(reason, "TASK_NOT_FOUND");
        assert.ok(message.isWellFormed(), message);
      }
    });

    it(`refuse U+0000 in a message, its context and an id, over ${binding.name}`, async () => {
      const text = "知\0微";
      for (const asked of [
        { operation: "send", params: userMessage(text) },
        { operation: "send", params: userMessage("x", { contextId: text }) },
        { operation: "get", params: { id: text } },
      ] as const) {
        const { message } = await refusal(binding, relay, ZHIWEI, asked);
        assert.match(message, /U\+0000/);
      }
    });

    it(`refuse parameters that cannot be, over ${binding.name}`, async () => {
      const params = { message: { messageId: "m", role: "ROLE_USER", parts: [] } };
      const { code } = await refusal(binding, relay, ZHIWEI, { operation: "send", params });
      assert.equal(
        code,
        { "JSON-RPC": -32602, REST: 400, gRPC: GRPC_STATUSES.INVALID_ARGUMENT }[binding.name],
      );
    });
  }

  it("are all tried, here or below", () => {
    const below = ["ParseError", "InvalidRequest", "MethodNotFound", "InvalidParams", "InternalError"];
    assert.deepEqual([...Object.keys(rows), ...below], [...A2A_ERROR_NAMES]);
  });

  it("say in a stream what went wrong behind its first event", async () => {
    for (const path of [`/agents/${ZHIWEI}/a2a`, `/agents/${ZHIWEI}/a2a/message:stream`]) {
      const params = userMessage("慢慢来");
      const body = path.endsWith("a2a")
        ? { jsonrpc: "2.0", id: 5, method: "SendStreamingMessage", params }
        : params;
      const work = MailboxAgent.next(relay, ZHIWEI).then((taken) =>
        taken.complete({ parts: [{ smell: "rose" }] }),
      );
      const { status, text } = await relay.call("POST", path, body);
      await work;
      assert.equal(status, 200);
      assert.match(text, /TASK_STATE_SUBMITTED.*INVALID_AGENT_RESPONSE/s);
    }
  });
});

describe("the errors of JSON-RPC below A2A", () => {
  const AT = `/agents/${ZHIWEI}/a2a`;
  const codeIn = ({ json }: { readonly json: unknown }): unknown =>
    (json as { readonly error: { readonly code: unknown } }).error.code;

  it("are parse errors, requests that are none, unknown methods and bad parameters", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(ZHIWEI);
    const rpc = { jsonrpc: "2.0", id: 1 };
    assert.equal(codeIn(await relay.call("POST", AT, "{")), A2A_ERRORS.ParseError.code);
    assert.equal(codeIn(await relay.call("POST", AT, {})), A2A_ERRORS.InvalidRequest.code);
    assert.equal(
      codeIn(await relay.call("POST", AT, { ...rpc, method: "x" })),
      A2A_ERRORS.MethodNotFound.code,
    );
    assert.equal(
      codeIn(await relay.call("POST", AT, { ...rpc, method: "GetTask" })),
      A2A_ERRORS.InvalidParams.code,
    );
  });

  it("are statuses of HTTP over REST", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(ZHIWEI);
    const { status, json } = await relay.call("POST", `${AT}/message:send`, "{");
    assert.deepEqual([status, codeIn({ json })], [400, A2A_ERRORS.ParseError.httpStatus]);
    const unknown = await relay.call("POST", `${AT}/message:sing`, {});
    assert.deepEqual([unknown.status, codeIn(unknown)], [404, A2A_ERRORS.MethodNotFound.httpStatus]);
    const bad = await relay.call("POST", `${AT}/message:send`, []);
    assert.deepEqual([bad.status, codeIn(bad)], [400, A2A_ERRORS.InvalidParams.httpStatus]);
  });

  for (const binding of BINDINGS) {
    it(`say that something failed inside, and not what, over ${binding.name}`, async () => {
      const authenticator = { authenticate: () => Promise.reject(new Error("the secret plan")) };
      await using relay = await A2aRelay.open({ authenticator });
      const asked: Asked = {
        operation: "get",
        params: { id: "x" },
        headers: { authorization: "Bearer fail" },
      };
      const { message, code } = await refusal(binding, relay, ZHIWEI, asked);
      const { code: rpc, httpStatus, grpc } = A2A_ERRORS.InternalError;
      assert.equal(code, { "JSON-RPC": rpc, REST: httpStatus, gRPC: GRPC_STATUSES[grpc] }[binding.name]);
      assert.doesNotMatch(message, /secret/);
    });
  }
});

type OwnRow = readonly [
  what: string,
  code: keyof typeof RELAY_ERRORS_ON_A2A,
  httpStatus: number,
  triggerOf: () => readonly [agentId: string, asked: Asked],
];

/** How the relay says what A2A has no name for. */
function ownExpected(
  code: keyof typeof RELAY_ERRORS_ON_A2A,
  httpStatus: number,
  binding: Binding,
): Pick<Refusal, "code" | "domain" | "httpStatus" | "reason"> {
  const { code: rpcCode, grpc } = RELAY_ERRORS_ON_A2A[code];
  const info = { reason: code.toUpperCase(), domain: "a2a-relay" };
  if (binding.name === "JSON-RPC") return { code: rpcCode, httpStatus, ...info };
  if (binding.name === "REST") return { code: httpStatus, httpStatus, ...info };
  return { code: GRPC_STATUSES[grpc], ...info };
}

describe("the relay's own errors over A2A", { timeout: 30_000 }, () => {
  const KEY = "0123456789abcdef0123456789abcdef";
  const root = { authorization: `Bearer ${KEY}` };
  let relay: A2aRelay;
  let reader: Readonly<Record<string, string>>;
  before(async () => {
    const env = { A2A_RELAY_API_KEY: KEY, A2A_RELAY_MAILBOX_OPEN_MAX: "1" };
    relay = await A2aRelay.open({ env, headers: root });
    await relay.register(ZHIWEI);
    await relay.register(PICKY);
    const { key } = (await relay.ok("POST", "/keys", { agent_id: PICKY, verbs: ["agents.read"] })) as {
      readonly key: string;
    };
    reader = { authorization: `Bearer ${key}` };
    await relay.ok("POST", `/agents/${ZHIWEI}/a2a/message:send`, { ...userMessage("满了"), ...NOW });
  });
  after(() => relay[Symbol.asyncDispose]());

  const send: Asked = { operation: "send", params: { ...userMessage("x"), ...NOW } };
  for (const binding of BINDINGS) {
    const rows = [
      [
        "a stranger",
        "unauthenticated",
        401,
        () => [ZHIWEI, { ...send, headers: { authorization: "Bearer wrong" } }],
      ],
      ["a key that may not", "permission_denied", 403, () => [ZHIWEI, { ...send, headers: reader }]],
      ["an unknown agent", "unknown_agent", 404, () => ["missing", { ...send, headers: root }]],
      ["a full mailbox", "mailbox_full", 429, () => [ZHIWEI, { ...send, headers: root }]],
    ] as const satisfies readonly OwnRow[];
    for (const [what, code, status, triggerOf] of rows as readonly OwnRow[]) {
      it(`say ${what}, over ${binding.name}`, async () => {
        const [agentId, asked] = triggerOf();
        const { message, ...said } = await refusal(binding, relay, agentId, asked);
        assert.deepEqual({ ...said }, ownExpected(code, status, binding), message);
      });
    }
  }
});
