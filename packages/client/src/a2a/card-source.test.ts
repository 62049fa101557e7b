import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startSdkAgent } from "../../testing/sdk-agent-server.ts";
import { startWireAgent, wireCard } from "../../testing/wire-agent.ts";
import { WireServer } from "../../testing/wire-server.ts";
import { A2AClient } from "./a2a-client.ts";
import { chooseInterface } from "./agent-connection.ts";
import { textOf } from "./text-of.ts";

const ANSWER = { result: { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "在" }] } } };
const METHODS = { SendMessage: () => ANSWER };

function interfaceOf(protocolBinding: string, protocolVersion: string, url = "https://a.example/x"): object {
  return { url, protocolBinding, protocolVersion };
}

describe("the card of an agent", () => {
  it("is found below the given address, with or without a slash at its end, or at its own address", async () => {
    await using agent = await startSdkAgent({ path: "/agents/小红" });
    for (const url of [agent.url, `${agent.url}/`, agent.cardUrl]) {
      const client = new A2AClient(url);
      assert.equal((await client.getAgentCard())["name"], "sdk-agent");
      assert.equal(textOf(await client.sendMessage("你好")), "echo: 你好");
    }
    const [first] = agent.requests;
    assert.equal(decodeURI(first?.path ?? ""), "/agents/小红/.well-known/agent-card.json");
    assert.equal(first?.headers["a2a-version"], "1.0");
  });

  it("is found under its older name", async () => {
    await using agent = await startWireAgent(METHODS, { cardPath: "/.well-known/agent.json" });
    assert.equal(textOf(await new A2AClient(agent.url).sendMessage("你好")), "在");
    assert.deepEqual(
      agent.requests.map(({ path }) => path),
      ["/.well-known/agent-card.json", "/.well-known/agent.json", "/rpc"],
    );
  });

  it("is asked for once for all calls, and again only to see whether it has changed", async () => {
    await using agent = await startSdkAgent();
    const client = new A2AClient(agent.url);
    await client.sendMessage("你好");
    await client.sendMessage("你好");
    assert.equal(agent.requests.filter(({ method }) => method === "GET").length, 1);
    const before = await client.getAgentCard();
    assert.equal(await client.getAgentCard(), before);
    const asked = agent.requests.filter(({ method }) => method === "GET");
    assert.deepEqual(
      asked.map(({ headers }) => headers["if-none-match"] !== undefined),
      [false, true, true],
    );
  });

  it("is heeded when it has changed", async () => {
    let path = "/old";
    await using agent = await startWireAgent(METHODS, {
      card: (url) => ({
        ...wireCard(url),
        supportedInterfaces: [interfaceOf("JSONRPC", "1.0", `${url}${path}`)],
      }),
    });
    const client = new A2AClient(agent.url);
    await client.sendMessage("你好");
    path = "/new";
    await client.getAgentCard();
    await client.sendMessage("你好");
    const sent = agent.requests.filter(({ method }) => method === "POST");
    assert.deepEqual(
      sent.map((request) => request.path),
      ["/old", "/new"],
    );
  });

  it("can be given, and is then not requested", async () => {
    await using agent = await startWireAgent(METHODS);
    const client = new A2AClient({ card: wireCard(agent.url) });
    assert.equal(textOf(await client.sendMessage("你好")), "在");
    assert.equal((await client.getAgentCard())["name"], "手工");
    assert.equal(agent.requests.length, 1);
  });

  it("is not needed by a caller that gives the dialect", async () => {
    await using agent = await startWireAgent(METHODS, { cardPath: "/none" });
    await assert.rejects(new A2AClient(`${agent.url}/rpc`).sendMessage("你好"), {
      code: "not_found",
      message: /no agent card at .*\/rpc\/\.well-known\/agent-card\.json or .*agent\.json; .*`dialect`/,
    });
    const client = new A2AClient({ url: `${agent.url}/rpc`, dialect: "1.0" });
    assert.equal(textOf(await client.sendMessage("你好")), "在");
    assert.equal(agent.requests.at(-1)?.path, "/rpc");
  });

  it("may name addresses that are relative to its own", async () => {
    await using agent = await startWireAgent(METHODS, {
      card: { supportedInterfaces: [interfaceOf("JSONRPC", "1.0", "/other")] },
    });
    await new A2AClient(agent.url).sendMessage("你好");
    assert.equal(agent.requests.at(-1)?.path, "/other");
  });

  it("that is refused is not requested at other addresses", async () => {
    await using agent = await WireServer.start(() => ({ status: 401, json: { error: "who?" } }));
    await assert.rejects(new A2AClient(agent.url).getAgentCard(), {
      code: "unauthenticated",
      message: /agent-card\.json answered 401 .*give the `apiKey` or the `headers`/,
    });
    assert.equal(agent.requests.length, 1);
  });
});

describe("the choice among the interfaces of a card", () => {
  const wishes = { binding: undefined, dialect: undefined, headers: {} };

  it("is JSON-RPC, then the newest version that is known", () => {
    const supportedInterfaces = [
      interfaceOf("GRPC", "1.0", "a.example:50051"),
      interfaceOf("HTTP+JSON", "1.0"),
      interfaceOf("JSONRPC", "0.3"),
      interfaceOf("JSONRPC", "1.0.1"),
      interfaceOf("JSONRPC", "2.0"),
    ];
    const card = { name: "a", supportedInterfaces };
    const chosen = chooseInterface(card, wishes);
    assert.deepEqual([chosen.binding, chosen.dialect], ["JSONRPC", "1.0"]);
    const rest = chooseInterface(card, { ...wishes, binding: "HTTP+JSON" });
    assert.deepEqual([rest.binding, rest.dialect], ["HTTP+JSON", "1.0"]);
  });

  it("reads cards of 0.3, with their preferred and their other transports", () => {
    const card = {
      name: "a",
      protocolVersion: "0.3.0",
      url: "https://a.example/rest",
      preferredTransport: "HTTP+JSON",
      additionalInterfaces: [{ url: "https://a.example/rpc", transport: "JSONRPC" }],
    };
    const { url, dialect, otherDialect } = chooseInterface(card, wishes);
    assert.deepEqual([url, dialect, otherDialect], ["https://a.example/rpc", "0.3", undefined]);
  });

  it("fails with what the card offers and what is wanted", () => {
    const card = { name: "只有", supportedInterfaces: [interfaceOf("GRPC", "1.0", "a.example:50051")] };
    assert.throws(() => chooseInterface(card, wishes), {
      code: "invalid_argument",
      message:
        /"只有" offers GRPC 1\.0; this client wants JSONRPC or HTTP\+JSON of A2A 1\.0, 0\.3, 0\.2, 0\.1/,
    });
    const old = { name: "旧", supportedInterfaces: [interfaceOf("JSONRPC", "0.3")] };
    assert.throws(
      () => chooseInterface(old, { ...wishes, dialect: "1.0" }),
      /offers JSONRPC 0\.3.*of A2A 1\.0$/,
    );
  });

  it("refuses to take credentials from a safe line to an open one", () => {
    const card = { name: "a", supportedInterfaces: [interfaceOf("JSONRPC", "1.0", "http://b.example/rpc")] };
    const secret = { ...wishes, headers: { authorization: "Bearer x" } };
    const from = "https://a.example/.well-known/agent-card.json";
    assert.throws(() => chooseInterface(card, secret, from), {
      code: "permission_denied",
      message: /open line/,
    });
    assert.equal(chooseInterface(card, wishes, from).url, "http://b.example/rpc");
  });

  it("refuses addresses that cannot be asked", () => {
    for (const url of ["javascript:alert(1)", "file:///etc/passwd", "http://u:p@a.example/", undefined]) {
      const card = { name: "a", supportedInterfaces: [{ ...interfaceOf("JSONRPC", "1.0"), url }] };
      assert.throws(() => chooseInterface(card, wishes), {
        code: "invalid_argument",
        message: /offers JSONRPC 1\.0 at an address that cannot be called;/,
      });
    }
  });
});

describe("the options of the client", () => {
  it("are refused with a sentence when they make no sense", () => {
    assert.throws(() => new A2AClient({}), /give the `url` of the agent, or its `card`/);
    assert.throws(() => new A2AClient("agent.example.org"), /url: expected an address such as https/);
    assert.throws(
      () => new A2AClient("https://u:secret@a.example"),
      (error: Error) => {
        assert.match(error.message, /must not hold a user or password/);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
    assert.throws(
      () => new A2AClient({ url: "http://a", apiKey: "secret\nx" }),
      (error: Error) => {
        assert.match(error.message, /line break/);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
    assert.throws(
      () => new A2AClient({ url: "http://a", timeoutMs: 0 }),
      /timeoutMs: expected a whole number/,
    );
  });
});
