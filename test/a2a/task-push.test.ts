import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import { A2aRelay } from "../support/a2a-relay.ts";
import { ask } from "../support/ask.ts";
import { startChildRelay } from "../support/child-relay.ts";
import { answers, PushReceiver, with200 } from "../support/push-receiver.ts";

type Json = Readonly<Record<string, unknown>>;

const ZHIWEI = "zhiwei@known-blocks1";
const ENV = {
  A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8",
  A2A_RELAY_PUSH_ATTEMPTS_MS: "0,20,40,60",
  A2A_RELAY_PUSH_TIMEOUT_MS: "5000",
};
const SECRETS = { token: "tok", authentication: { scheme: "Bearer", credentials: "a.b.c" } };

/** A caller of zhiwei over JSON-RPC, and zhiwei itself, which answers by the relay's own routes. */
class Conversation {
  readonly #url: () => string;

  constructor(relay: { readonly url: string }) {
    this.#url = () => relay.url;
  }

  async register(): Promise<void> {
    const { status } = await ask(this.#url(), "POST", "/agents/register", { agent_id: ZHIWEI });
    assert.equal(status, 201);
  }

  async call(method: string, params: object): Promise<Json> {
    const body = { jsonrpc: "2.0", id: 1, method, params };
    const answer = await ask<Json>(this.#url(), "POST", `/agents/${ZHIWEI}/a2a`, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  }

  async result(method: string, params: object): Promise<Json> {
    const answer = await this.call(method, params);
    assert.ok(answer["result"], JSON.stringify(answer));
    return answer["result"] as Json;
  }

  /** Asks zhiwei in 1.0, to be told there. */
  async send(config?: object): Promise<string> {
    const message = { messageId: "问一", role: "ROLE_USER", parts: [{ text: "请译成英文" }] };
    const more = config === undefined ? {} : { taskPushNotificationConfig: config };
    const sent = await this.result("SendMessage", {
      message,
      configuration: { returnImmediately: true, ...more },
    });
    return String((sent["task"] as Json)["id"]);
  }

  async works(taskId: string, text: string): Promise<void> {
    await this.#post(`/tasks/${taskId}/status`, { state: "working", text });
  }

  async completes(taskId: string, text: string): Promise<void> {
    await this.#post(`/tasks/${taskId}/complete`, { text });
  }

  async disabled(): Promise<EventView> {
    const path = "/events?type=push.disabled&wait_ms=20000";
    const { body } = await ask<{ readonly events: readonly EventView[] }>(this.#url(), "GET", path);
    const [event] = body.events;
    assert.ok(event, "nothing was disabled");
    return event;
  }

  async #post(path: string, content: object): Promise<void> {
    const { status, body } = await ask(this.#url(), "POST", path, content);
    assert.equal(status, 200, JSON.stringify(body));
  }
}

async function open(env: Readonly<Record<string, string>> = {}): Promise<{
  readonly relay: A2aRelay;
  readonly talk: Conversation;
}> {
  const relay = await A2aRelay.open({ env: { ...ENV, ...env } });
  const talk = new Conversation(relay);
  await talk.register();
  return { relay, talk };
}

function bodiesOf({ requests }: PushReceiver): readonly Json[] {
  return requests.map(({ body }) => JSON.parse(body) as Json);
}

/** What was said with each status, in the order it came. */
function said(receiver: PushReceiver): readonly string[] {
  return receiver.requests.map(({ body }) => /"text":"([^"]*)"/.exec(body)?.[1] ?? "");
}

describe("a caller that asks over A2A to be told of its task", () => {
  it("gets every event in 1.0, in order, with the right headers, up to the end", async () => {
    await using receiver = await PushReceiver.open();
    const { relay, talk } = await open();
    await using _ = relay;
    const taskId = await talk.send({ url: receiver.url, ...SECRETS });
    for (let step = 1; step <= 5; step += 1) await talk.works(taskId, `第 ${step} 步 🦊`);
    await talk.completes(taskId, "译好了");
    await receiver.arrived(6);
    assert.deepEqual(said(receiver), [...[1, 2, 3, 4, 5].map((step) => `第 ${step} 步 🦊`), "译好了"]);
    for (const { headers } of receiver.requests) {
      assert.equal(headers["content-type"], "application/a2a+json");
      assert.equal(headers["a2a-version"], "1.0");
      assert.equal(headers["authorization"], "Bearer a.b.c");
      assert.equal(headers["x-a2a-notification-token"], "tok");
      assert.match(String(headers["user-agent"]), /^a2a-relay\/\d/);
    }
    const task = await talk.result("GetTask", { id: taskId });
    const last = bodiesOf(receiver).at(-1)?.["statusUpdate"] as Json;
    assert.deepEqual(
      [last["taskId"], last["contextId"], last["status"]],
      [taskId, task["contextId"], task["status"]],
    );
    const config = { taskId, id: taskId };
    const known = await talk.result("GetTaskPushNotificationConfig", config);
    assert.deepEqual(known, { ...config, url: receiver.url, ...SECRETS });
  });

  it("gets the bare task in 0.3, and can name, list and delete its configurations there", async () => {
    await using receiver = await PushReceiver.open();
    const { relay, talk } = await open();
    await using _ = relay;
    const message = {
      kind: "message",
      messageId: "问一",
      role: "user",
      parts: [{ kind: "text", text: "请译" }],
    };
    const sent = await talk.result("message/send", { message, configuration: { blocking: false } });
    const taskId = String(sent["id"]);
    const authentication = { schemes: ["Bearer"], credentials: "a.b.c" };
    const pushNotificationConfig = { url: receiver.url, token: "tok", authentication };
    const made = await talk.result("tasks/pushNotificationConfig/set", { taskId, pushNotificationConfig });
    assert.deepEqual(made, { taskId, pushNotificationConfig: { id: taskId, ...pushNotificationConfig } });
    await talk.works(taskId, "开始了");
    const [request] = await receiver.arrived(1);
    assert.equal(request?.headers["content-type"], "application/json");
    assert.equal(request?.headers["a2a-version"], undefined);
    assert.equal(request?.headers["authorization"], "Bearer a.b.c");
    assert.equal(request?.headers["x-a2a-notification-token"], "tok");
    assert.deepEqual(bodiesOf(receiver)[0], await talk.result("tasks/get", { id: taskId }));
    assert.match(request?.body ?? "", /"kind":"task".*"state":"working".*开始了/);
    assert.deepEqual(await talk.result("tasks/pushNotificationConfig/get", { id: taskId }), made);
    const params = { id: taskId, pushNotificationConfigId: taskId };
    const listed = await talk.result("tasks/pushNotificationConfig/list", { id: taskId });
    assert.deepEqual(listed, [made]);
    await talk.call("tasks/pushNotificationConfig/delete", params);
    await talk.completes(taskId, "译好了");
    const { error } = (await talk.call("tasks/pushNotificationConfig/get", params)) as {
      readonly error: Json;
    };
    assert.equal(error["code"], -32001);
    assert.equal(receiver.requests.length, 1);
  });

  it("gets again what it did not take, no sooner than it says, and the rest behind it", async () => {
    await using receiver = await PushReceiver.open((response, number) => {
      if (number === 1) response.writeHead(500).end();
      else if (number === 2) response.writeHead(429, { "retry-after": "1" }).end();
      else response.writeHead(204).end();
    });
    const { relay, talk } = await open();
    await using _ = relay;
    const taskId = await talk.send({ url: receiver.url });
    for (const text of ["甲", "乙", "丙"]) await talk.works(taskId, text);
    const [first, second, third] = await receiver.arrived(5);
    assert.deepEqual(said(receiver), ["甲", "甲", "甲", "乙", "丙"]);
    assert.ok(Number(second?.atMs) - Number(first?.atMs) >= 15);
    assert.ok(Number(third?.atMs) - Number(second?.atMs) >= 950);
  });

  it("gets nothing more once it answers 410", async () => {
    await using receiver = await PushReceiver.open(answers(410));
    await using other = await PushReceiver.open();
    const { relay, talk } = await open();
    await using _ = relay;
    const taskId = await talk.send({ url: receiver.url });
    await talk.result("CreateTaskPushNotificationConfig", { taskId, id: "另一个", url: other.url });
    await talk.works(taskId, "甲");
    const { data, task_id } = await talk.disabled();
    assert.deepEqual([data["config_id"], data["state"], task_id], [taskId, "ended", taskId]);
    await talk.works(taskId, "乙");
    await talk.completes(taskId, "丙");
    await other.arrived(3);
    assert.deepEqual([said(receiver), said(other)], [["甲"], ["甲", "乙", "丙"]]);
  });

  it("is refused addresses inside, with its message too, and no message is sent then", async () => {
    const { relay, talk } = await open();
    await using _ = relay;
    const taskId = await talk.send();
    for (const url of ["http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "ftp://a.example/"]) {
      const answer = await talk.call("CreateTaskPushNotificationConfig", { taskId, url });
      const { code, message } = answer["error"] as { readonly code: number; readonly message: string };
      assert.equal(code, -32602, url);
      assert.match(message, /^url: /);
      const question = { messageId: "问二", role: "ROLE_USER", parts: [{ text: "你好" }] };
      const configuration = { returnImmediately: true, taskPushNotificationConfig: { url } };
      const refused = await talk.call("SendMessage", { message: question, configuration });
      assert.equal((refused["error"] as Json)["code"], -32602);
    }
    const { tasks } = (await talk.result("ListTasks", {})) as { readonly tasks: readonly Json[] };
    assert.deepEqual(
      tasks.map(({ id }) => id),
      [taskId],
    );
  });
});

describe("after a relay that was killed in the middle", () => {
  it("the next one goes on without a gap, in order, and calls no endpoint that is no longer allowed", async () => {
    const directory = await mkdtemp(join(tmpdir(), "task-push-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const dataDirectory = join(directory, "data");
    // It holds the third request open, and never answers.
    await using receiver = await PushReceiver.open((...asked) => {
      if (asked[1] !== 3) with200(...asked);
    });
    const texts = Array.from({ length: 8 }, (_unused, index) => `第 ${index + 1} 步`);
    let taskId = "";
    {
      await using relay = await startChildRelay({ dataDirectory, env: { ...ENV } });
      const talk = new Conversation(relay);
      await talk.register();
      taskId = await talk.send({ url: receiver.url });
      for (const text of texts) await talk.works(taskId, text);
      await receiver.arrived(3);
      await relay.kill("SIGKILL");
    }
    {
      await using relay = await startChildRelay({ dataDirectory, env: { ...ENV } });
      const talk = new Conversation(relay);
      await talk.works(taskId, "重启以后");
      await receiver.arrived(texts.length + 2);
      // Killed between an answer and its record, the one before may have come twice.
      assert.deepEqual([...new Set(said(receiver))], [...texts, "重启以后"]);
      const positions = said(receiver).map((text) => [...texts, "重启以后"].indexOf(text));
      const firsts = positions.filter((position, index) => positions.indexOf(position) === index);
      assert.deepEqual(
        firsts,
        firsts.toSorted((one, other) => one - other),
      );
    }
    const before = receiver.requests.length;
    await using relay = await startChildRelay({
      dataDirectory,
      env: { A2A_RELAY_PUSH_ATTEMPTS_MS: "0,20" },
    });
    const talk = new Conversation(relay);
    await talk.completes(taskId, "完成");
    const { data } = await talk.disabled();
    assert.equal(data["state"], "failed");
    assert.match(String(data["reason"]), /does not call/);
    assert.equal(receiver.requests.length, before);
  });
});
