import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import type { MessageInput } from "@a2a-relay/protocol";
import { startSdkAgent } from "../../packages/client/testing/sdk-agent-server.ts";
import { LULU, openHttpRelay } from "../../packages/relay/testing/http-relay.ts";
import { BreakableLine } from "../support/breakable-line.ts";
import { startChildRelay } from "../support/child-relay.ts";
import { eventually } from "../support/eventually.ts";
import { ENV } from "../support/pushing-relay.ts";
import { ask, messageOf, madeIn, startAgentBehind, taskOf, until } from "./remote-agents.ts";

const RELAY = { env: { ...ENV, A2A_RELAY_PUSH_TIMEOUT_MS: "5000" } };
const IDEMPOTENT = { idempotency: { duplicate_safety: "idempotent", key: "只此一次" } } as const;

/** Where nothing listens. */
const UNREACHABLE = "http://127.0.0.1:1";

type Talk = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** An agent that has a card, and does with what it is sent whatever a test says. */
class RoughAgent implements AsyncDisposable {
  readonly url: string;
  /** The bodies of what it was sent. */
  readonly sent: string[] = [];
  talk: Talk;
  readonly #server: Server;

  private constructor(server: Server, talk: Talk) {
    this.#server = server;
    this.talk = talk;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  static async open(talk: Talk): Promise<RoughAgent> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const agent = new RoughAgent(server, talk);
    server.on("request", (request: IncomingMessage, response: ServerResponse) =>
      agent.#hear(request, response),
    );
    return agent;
  }

  #hear(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "GET") {
      const supportedInterfaces = [{ url: this.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      response.end(JSON.stringify({ name: "粗人", supportedInterfaces }));
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      this.sent.push(body);
      this.talk(request, response, body);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The agent takes all of it, and then nothing more is heard. */
const hangUp: Talk = (request) => request.socket.destroy();

function answerWith(result: object): Talk {
  return (_request, response) => response.end(JSON.stringify({ jsonrpc: "2.0", id: "1", result }));
}

const DONE = answerWith({ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "做完了" }] } });

describe("a message that may have arrived", () => {
  it("is not sent again when its sender did not call it idempotent, and its receipts say so", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await RoughAgent.open(hangUp);
    const { messageId, taskId } = await ask(relay, agent.url, "付款一百元");
    const { push, delivery, receipts } = await eventually(
      () => messageOf(relay, messageId),
      (message) => message.push?.state === "failed",
    );
    assert.match(push.reason ?? "", /may have arrived, and is not sent again/);
    assert.equal(delivery?.state, "dead");
    assert.ok(receipts.some(({ stage }) => stage === "push_failed"));
    const { state, status_text: why } = await taskOf(relay, taskId);
    assert.equal(state, "failed");
    assert.match(why ?? "", /may have arrived/);
    assert.equal(agent.sent.length, 1);
  });

  it("waits for an agent with an id here, until an operator has found that it did not arrive", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await RoughAgent.open(hangUp);
    const registration = { agent_id: "粗人@studio", callback_url: agent.url, push: "a2a" };
    assert.equal((await relay.post("/agents/register", registration)).status, 201);
    const { messageId, taskId } = await ask(relay, "粗人@studio", "付款一百元");
    const { delivery } = await eventually(
      () => messageOf(relay, messageId),
      (message) => message.push?.state === "failed",
    );
    assert.deepEqual([delivery?.state, (await taskOf(relay, taskId)).state], ["available", "submitted"]);
    agent.talk = DONE;
    const since = new Date(0).toISOString();
    const path = `/agents/${encodeURIComponent("粗人@studio")}/push/replay`;
    const { status } = await relay.post(path, { since });
    assert.equal(status, 200);
    assert.equal((await until(relay, taskId, "completed")).status_text, "做完了");
    assert.equal(agent.sent.length, 2);
  });

  it("is sent again when it is idempotent, under the same name", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await RoughAgent.open((...heard) =>
      (agent.sent.length < 3 ? hangUp : DONE)(...heard),
    );
    const { taskId } = await ask(relay, agent.url, "查询余额", IDEMPOTENT);
    await until(relay, taskId, "completed");
    assert.equal(agent.sent.length, 3);
    const ids = agent.sent.map(
      (body) => (JSON.parse(body) as { params: { message: { messageId: string } } }).params,
    );
    assert.equal(new Set(ids.map(({ message }) => message.messageId)).size, 1);
  });

  const safeties: readonly (readonly [string, Partial<MessageInput>, number])[] = [
    ["is not sent again", {}, 1],
    ["is sent again where it is idempotent", IDEMPOTENT, 2],
  ];
  for (const [title, message, times] of safeties) {
    it(`${title} after the relay was killed while it waited`, async () => {
      await using agent = await RoughAgent.open(() => undefined);
      await using before = await startChildRelay({ env: RELAY.env });
      const { dataDirectory } = before;
      const client = new RelayClient({ url: before.url });
      await client.register({ agent_id: LULU });
      const wanted: MessageInput = { from: LULU, to: agent.url, type: "request", body: "付款", ...message };
      const { receipt } = await client.send(wanted);
      await eventually(
        () => client.message(receipt.message_id),
        () => agent.sent.length === 1,
      );
      await before.kill("SIGKILL");
      agent.talk = DONE;
      await using after = await startChildRelay({ env: RELAY.env, dataDirectory });
      const again = new RelayClient({ url: after.url });
      const { push } = await eventually(
        () => again.message(receipt.message_id),
        (seen) => seen.push?.state !== "pending",
      );
      assert.equal(push?.state, times === 1 ? "failed" : "delivered");
      assert.equal(agent.sent.length, times);
    });
  }
});

describe("a task of a remote agent", () => {
  it("is found again after the relay was killed in the middle of it", async () => {
    await using agent = await startSdkAgent();
    await using before = await startChildRelay({ env: RELAY.env });
    const { dataDirectory } = before;
    const client = new RelayClient({ url: before.url });
    await client.register({ agent_id: LULU });
    const { receipt } = await client.send({ from: LULU, to: agent.url, type: "request", body: "wait" });
    const taskId = receipt.task_id ?? "";
    await eventually(
      () => client.task(taskId),
      (task) => task.state === "working",
    );
    await before.kill("SIGKILL");
    const gets = agent.requests.map(
      ({ body }) => body as { method?: string; params?: { id?: string } } | undefined,
    );
    const theirs = gets.find((body) => body?.method === "GetTask")?.params?.id ?? "";
    agent.finish(theirs, "没等你也做完了");
    await using after = await startChildRelay({ env: RELAY.env, dataDirectory });
    const again = new RelayClient({ url: after.url });
    const task = await eventually(
      () => again.task(taskId),
      ({ state }) => state === "completed",
    );
    assert.equal(madeIn(task), "没等你也做完了");
    const sends = agent.requests.filter(
      ({ body }) => (body as { method?: string } | undefined)?.method === "SendMessage",
    );
    assert.equal(sends.length, 1);
  });

  it("goes on when the agent was away for a while", async () => {
    await using relay = await openHttpRelay(RELAY);
    let isAway = false;
    let inVain = 0;
    let target = "";
    await using line = await BreakableLine.open(() => {
      if (!isAway) return target;
      inVain += 1;
      return UNREACHABLE;
    });
    await using agent = await startAgentBehind(line.url);
    target = agent.url;
    const { taskId } = await ask(relay, line.url, "wait");
    await until(relay, taskId, "working");
    const theirs = agent.requests
      .map(({ body }) => body as { method?: string; params?: { id?: string } } | undefined)
      .find((body) => body?.method === "GetTask")?.params?.id;
    isAway = true;
    line.cut();
    agent.finish(theirs ?? "", "回来了");
    await eventually(
      () => taskOf(relay, taskId),
      () => inVain > 1,
    );
    assert.equal((await taskOf(relay, taskId)).state, "working");
    isAway = false;
    assert.equal(madeIn(await until(relay, taskId, "completed")), "回来了");
  });

  it("fails when the agent has come back without knowing of it", async () => {
    await using relay = await openHttpRelay(RELAY);
    let target = "";
    await using line = await BreakableLine.open(() => target);
    await using stack = new AsyncDisposableStack();
    const agent = stack.use(await startAgentBehind(line.url));
    target = agent.url;
    const { taskId } = await ask(relay, line.url, "wait");
    await until(relay, taskId, "working");
    await using forgetful = await startAgentBehind(line.url);
    target = forgetful.url;
    line.cut();
    const { status_text: why } = await until(relay, taskId, "failed");
    assert.match(why ?? "", /no longer knows the task/);
  });

  it("fails at once, in its words, when the agent refuses it", async () => {
    await using relay = await openHttpRelay(RELAY);
    const error = { code: -32005, message: "不收图片" };
    await using agent = await RoughAgent.open((_request, response) => {
      response.end(JSON.stringify({ jsonrpc: "2.0", id: "1", error }));
    });
    const { messageId, taskId } = await ask(relay, agent.url, "看图");
    const { status_text: why } = await until(relay, taskId, "failed");
    assert.match(why ?? "", /the agent refused it: 不收图片/);
    const { push } = await messageOf(relay, messageId);
    assert.deepEqual([push.state, push.attempts.length, agent.sent.length], ["failed", 1, 1]);
  });

  it("waits for an agent that is too busy, as long as messages are tried", async () => {
    await using relay = await openHttpRelay(RELAY);
    await using agent = await RoughAgent.open((request, response, body) => {
      if (agent.sent.length >= 3) return DONE(request, response, body);
      response.writeHead(503).end();
    });
    const { taskId } = await ask(relay, agent.url, "忙吗");
    await until(relay, taskId, "completed");
    assert.equal(agent.sent.length, 3);
  });
});

describe("an address that the relay may not call", () => {
  it("is refused at once where it says so itself", async () => {
    await using relay = await openHttpRelay();
    for (const to of [
      "http://127.0.0.1:8080/",
      "http://169.254.169.254/latest",
      "https://[::1]/a2a",
      "http://10.1/",
    ]) {
      const message = { from: LULU, to, type: "request", body: "喂" };
      await relay.refused(relay.post("/messages", message), "invalid_argument", /A2A_RELAY_EGRESS_ALLOW/);
    }
    for (const to of ["https://user:pass@agent.example/", "https://agent.example/#part"]) {
      await relay.refused(
        relay.post("/messages", { from: LULU, to, body: "喂" }),
        "invalid_argument",
        /^to: /,
      );
    }
    const { json } = await relay.get("/agents");
    assert.equal(json.total, 2, "no agent was registered for it");
  });

  it("is not called when a card names it", async () => {
    await using relay = await openHttpRelay(RELAY);
    const supportedInterfaces = [
      { url: "http://169.254.169.254/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ];
    await using agent = await startSdkAgent({ card: { supportedInterfaces } });
    const { messageId } = await ask(relay, agent.url, "喂");
    const { push } = await eventually(
      () => messageOf(relay, messageId),
      (message) => message.push?.state === "failed",
    );
    assert.match(push.reason ?? "", /does not call/);
  });
});
