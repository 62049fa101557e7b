import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { A2aTask, TaskView } from "@a2a-relay/protocol";
import { type Asked, type Binding, BINDINGS, isRefusal } from "../support/a2a-bindings.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";
import { userMessage } from "../support/sdk-client.ts";

const ROOT_KEY = "0123456789abcdef0123456789abcdef";
const ZHIWEI = "zhiwei@known-blocks1";
const LULU = "lulu@kamac";
const KAMES = "kames@desk";
const NOW = { configuration: { returnImmediately: true } };

type Headers = Readonly<Record<string, string>>;

const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });
const ROOT = bearer(ROOT_KEY);

async function openKeyed(env: Readonly<Record<string, string>> = {}): Promise<A2aRelay> {
  return A2aRelay.open({ env: { A2A_RELAY_API_KEY: ROOT_KEY, ...env }, headers: ROOT });
}

async function keyOf(relay: A2aRelay, wish: object): Promise<Headers> {
  const { key } = (await relay.ok("POST", "/keys", wish)) as { readonly key: string };
  return bearer(key);
}

/** Asks over REST, whose JSON needs no unwrapping, and answers with the task. */
async function asked(relay: A2aRelay, text: string, headers: Headers, more: object = {}): Promise<A2aTask> {
  const body = { ...userMessage(text), ...NOW, ...more };
  const { task } = (await relay.ok("POST", `/agents/${ZHIWEI}/a2a/message:send`, body, headers)) as {
    readonly task: A2aTask;
  };
  return task;
}

const requesterOf = async (relay: A2aRelay, id: string): Promise<string> =>
  ((await relay.ok("GET", `/tasks/${id}`)) as { readonly task: TaskView }).task.requester;

async function reasonOf(binding: Binding, relay: A2aRelay, asking: Asked, agentId = ZHIWEI): Promise<string> {
  const answer = await binding.ask(relay, agentId, asking);
  assert.ok(isRefusal(answer), `not refused over ${binding.name}: ${JSON.stringify(answer).slice(0, 300)}`);
  return answer.reason ?? "";
}

describe("who asks over A2A", { timeout: 30_000 }, () => {
  let relay: A2aRelay;
  let lulu: Headers;
  let kames: Headers;
  before(async () => {
    relay = await openKeyed();
    for (const id of [ZHIWEI, LULU, KAMES]) await relay.register(id);
    lulu = await keyOf(relay, { agent_id: LULU });
    kames = await keyOf(relay, { agent_id: KAMES });
  });
  after(() => relay[Symbol.asyncDispose]());

  it("is the agent whose key it is, and the result is in its mailbox too", async () => {
    const { id } = await asked(relay, "替露露问", lulu);
    assert.equal(await requesterOf(relay, id), LULU);
    await (await MailboxAgent.next(relay, ZHIWEI)).complete({ text: "告诉露露" });
    const { messages } = (await relay.ok("GET", `/mailbox/${LULU}?peek=true`, undefined, lulu)) as {
      readonly messages: readonly { readonly message: { readonly body: string; readonly from: string } }[];
    };
    assert.deepEqual(
      messages.map(({ message: { body, from } }) => [from, body]),
      [[ZHIWEI, "告诉露露"]],
    );
  });

  it("is a guest where it is an operator, who has no mailbox", async () => {
    const { id } = await asked(relay, "管理员问", ROOT);
    assert.equal(await requesterOf(relay, id), "guest@relay");
    await (await MailboxAgent.next(relay, ZHIWEI)).complete({ text: "好" });
    const shown = (await relay.ok("GET", `/agents/${ZHIWEI}/a2a/tasks/${id}`)) as A2aTask;
    assert.equal(shown.status.state, "TASK_STATE_COMPLETED");
  });

  it("may be named by an operator, and by an agent only as itself", async () => {
    const { id } = await asked(relay, "以露露之名", ROOT, { metadata: { sender_agent_id: LULU } });
    assert.equal(await requesterOf(relay, id), LULU);
    await (await MailboxAgent.next(relay, ZHIWEI)).complete({ text: "好" });
    for (const binding of BINDINGS) {
      for (const sender_agent_id of [KAMES, "guest@relay"]) {
        const params = { ...userMessage("冒名"), ...NOW, metadata: { sender_agent_id } };
        const reason = await reasonOf(binding, relay, { operation: "send", params, headers: lulu });
        assert.equal(reason, "PERMISSION_DENIED", sender_agent_id);
      }
    }
  });

  for (const binding of BINDINGS) {
    it(`sees nothing of what others asked, over ${binding.name}`, async () => {
      const { id } = await asked(relay, "露露的事", lulu);
      for (const asking of [
        { operation: "get", params: { id } },
        { operation: "cancel", params: { id } },
        { operation: "subscribe", params: { id } },
        { operation: "send", params: { ...userMessage("插话", { taskId: id }), ...NOW } },
        { operation: "push-create", params: { taskId: id, url: "https://hooks.example/" } },
      ] as const) {
        assert.equal(
          await reasonOf(binding, relay, { ...asking, headers: kames }),
          "TASK_NOT_FOUND",
          asking.operation,
        );
      }
      const mine = await binding.ask(relay, ZHIWEI, { operation: "get", params: { id }, headers: lulu });
      assert.ok(!isRefusal(mine));
    });

    it(`is told the same of a task of others and of none, over ${binding.name}`, async () => {
      const { id } = await asked(relay, "露露的事", lulu);
      const said = async (task: string): Promise<string> => {
        const answer = await binding.ask(relay, ZHIWEI, {
          operation: "get",
          params: { id: task },
          headers: kames,
        });
        return JSON.stringify(answer).replaceAll(task, "<id>");
      };
      assert.equal(await said(id), await said("01a1dfcd-2bba-7000-b06a-f989bd4184f7"));
    });
  }

  it("lists its own tasks and no others", async () => {
    await asked(relay, "凯姆的事", kames);
    const listed = async (headers: Headers): Promise<ReadonlySet<string>> => {
      const { tasks } = (await relay.ok(
        "GET",
        `/agents/${ZHIWEI}/a2a/tasks?historyLength=5`,
        undefined,
        headers,
      )) as { readonly tasks: readonly A2aTask[] };
      return new Set(
        tasks.flatMap(({ history = [] }) => history.map(({ parts }) => String(parts[0]?.["text"]))),
      );
    };
    assert.deepEqual([...(await listed(kames))], ["凯姆的事"]);
    assert.ok(!(await listed(lulu)).has("凯姆的事"));
    assert.ok(!(await listed(ROOT)).has("凯姆的事"), "an operator lists what it asked itself");
  });
});

describe("a key that may do little", () => {
  it("is refused what it may not, over every binding, and nothing is written", async () => {
    await using relay = await openKeyed();
    for (const id of [ZHIWEI, LULU]) await relay.register(id);
    const reads = await keyOf(relay, { agent_id: LULU, verbs: ["agents.read"] });
    const sends = await keyOf(relay, { agent_id: LULU, verbs: ["messages.send", "tasks.read"] });
    const { id } = await asked(relay, "可以问", sends);
    for (const binding of BINDINGS) {
      const send = {
        operation: "send",
        params: { ...userMessage("不可以"), ...NOW },
        headers: reads,
      } as const;
      assert.equal(await reasonOf(binding, relay, send), "PERMISSION_DENIED");
      const get = { operation: "get", params: { id }, headers: reads } as const;
      assert.match(await reasonOf(binding, relay, get), /PERMISSION_DENIED|TASK_NOT_FOUND/);
      const cancel = { operation: "cancel", params: { id }, headers: sends } as const;
      assert.equal(await reasonOf(binding, relay, cancel), "PERMISSION_DENIED");
      const list = { operation: "list", params: {}, headers: sends } as const;
      assert.equal(await reasonOf(binding, relay, list), "PERMISSION_DENIED");
    }
    const { messages } = (await relay.ok("GET", `/mailbox/${ZHIWEI}?peek=true`)) as {
      readonly messages: readonly object[];
    };
    assert.equal(messages.length, 1);
  });
});

describe("tenants of the relay", () => {
  it("see nothing of each other: agents of another do not exist", async () => {
    await using relay = await openKeyed();
    await relay.register(ZHIWEI);
    const acme = await keyOf(relay, { tenant: "acme" });
    await relay.ok("POST", "/agents/register", { agent_id: "only@acme" }, acme);
    const { id } = await asked(relay, "默认租户", ROOT);
    for (const binding of BINDINGS) {
      const send = { operation: "send", params: { ...userMessage("隔墙"), ...NOW } } as const;
      const ask = async (agentId: string, headers: Headers): Promise<string> => {
        const answer = await binding.ask(relay, agentId, { ...send, headers });
        return JSON.stringify(answer).replaceAll(agentId, "<agent>");
      };
      assert.equal(await ask("only@acme", ROOT), await ask("missing@acme", ROOT));
      assert.equal(await ask(ZHIWEI, acme), await ask("missing@acme", acme));
      const get = { operation: "get", params: { id }, headers: acme } as const;
      assert.match(await reasonOf(binding, relay, get, "only@acme"), /TASK_NOT_FOUND/);
    }
  });
});

describe("the operator of the relay", () => {
  it("reaches the agents of a tenant over gRPC as their cards name them, and no other caller does", async () => {
    await using relay = await openKeyed();
    await relay.register("bob@b");
    const acme = await keyOf(relay, { tenant: "acme" });
    const other = await keyOf(relay, { tenant: "other" });
    await relay.ok("POST", "/agents/register", { agent_id: "bob@b" }, acme);
    const card = (await relay.ok("GET", "/t/acme/agents/bob@b/.well-known/agent-card.json")) as {
      readonly supportedInterfaces: readonly { readonly protocolBinding: string; readonly tenant?: string }[];
    };
    const tenant = card.supportedInterfaces.find((each) => each.protocolBinding === "GRPC")?.tenant ?? "";
    assert.equal(tenant, "acme/bob@b");
    const grpc = BINDINGS.find(({ name }) => /grpc/i.test(name));
    assert.ok(grpc);
    const send = { operation: "send", params: { ...userMessage("给 acme 的"), ...NOW } } as const;
    for (const headers of [ROOT, acme]) {
      const answer = await grpc.ask(relay, tenant, { ...send, headers });
      assert.ok(!isRefusal(answer), JSON.stringify(answer));
    }
    const { messages } = (await relay.ok("GET", "/mailbox/bob@b?peek=true", undefined, acme)) as {
      readonly messages: readonly object[];
    };
    assert.equal(messages.length, 2);
    assert.ok(isRefusal(await grpc.ask(relay, tenant, { ...send, headers: other })));
  });
});

describe("a relay that asks for capabilities", () => {
  it("refuses to send without one, over every binding, and sends with it", async () => {
    await using relay = await openKeyed({ A2A_RELAY_CAPABILITIES: "on" });
    for (const id of [ZHIWEI, LULU]) await relay.register(id);
    const lulu = await keyOf(relay, { agent_id: LULU });
    for (const binding of BINDINGS) {
      const send = {
        operation: "send",
        params: { ...userMessage("没有凭证"), ...NOW },
        headers: lulu,
      } as const;
      assert.equal(await reasonOf(binding, relay, send), "PERMISSION_DENIED");
    }
    await relay.ok("POST", "/capabilities/grant", { subject: LULU, action: `a2a.send.${ZHIWEI}` });
    await relay.ok("POST", "/capabilities/grant", { subject: ZHIWEI, action: `a2a.recv.${LULU}` });
    for (const binding of BINDINGS) {
      const send = {
        operation: "send",
        params: { ...userMessage("有凭证"), ...NOW },
        headers: lulu,
      } as const;
      const answer = await binding.ask(relay, ZHIWEI, send);
      assert.ok(!isRefusal(answer), JSON.stringify(answer));
    }
  });
});
