import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { A2aEvents } from "../support/a2a-events.ts";
import { A2aRelay, type WireAnswer } from "../support/a2a-relay.ts";

const ZHIWEI = "zhiwei@known-blocks1";
const LULU = "lulu@kamac";
const NOW = { returnImmediately: true };

interface RpcAnswer {
  readonly result?: Readonly<Record<string, unknown>> & { readonly task?: { readonly id: string } };
  readonly error?: { readonly code: number; readonly message: string };
}

describe("whom a request is for", () => {
  let relay: A2aRelay;
  before(async () => {
    relay = await A2aRelay.open();
    await relay.register(ZHIWEI, { aliases: ["知微"], display_name: "Zhi Wei" });
    await relay.register(LULU);
  });
  after(() => relay[Symbol.asyncDispose]());

  let count = 0;
  const message = (text: string, more: object = {}): object => {
    count += 1;
    return { messageId: `m-${count}`, role: "ROLE_USER", parts: [{ text }], ...more };
  };
  const rpc = async (path: string, method: string, params: object): Promise<RpcAnswer> => {
    const { json } = await relay.call("POST", path, { jsonrpc: "2.0", id: 1, method, params });
    return json as RpcAnswer;
  };
  /** The texts in the agent's mailbox that were not read before. */
  const inboxOf = async (agentId: string): Promise<readonly string[]> => {
    const { messages } = (await relay.ok("POST", `/mailbox/${agentId}/lease`, { max: 100 })) as {
      readonly messages: readonly { readonly message: { readonly body: string } }[];
    };
    return messages.map(({ message: { body } }) => body).filter((body) => !/was canceled/.test(body));
  };
  const taskOf = (answer: RpcAnswer): string =>
    answer.result?.task?.id ?? assert.fail(JSON.stringify(answer));

  for (const [how, params] of [
    [
      "metadata of the request",
      (text: string) => ({ message: message(text), metadata: { relay_target_agent_id: ZHIWEI } }),
    ],
    [
      "metadata of the message",
      (text: string) => ({ message: message(text, { metadata: { relay_target_agent_id: ZHIWEI } }) }),
    ],
    ["the tenant field", (text: string) => ({ message: message(text), tenant: ZHIWEI })],
    ["an alias in the tenant field", (text: string) => ({ message: message(text), tenant: "知微" })],
  ] as const) {
    it(`is said at the relay's endpoint by ${how}`, async () => {
      taskOf(await rpc("/a2a", "SendMessage", { ...params(how), configuration: NOW }));
      assert.deepEqual([await inboxOf(ZHIWEI), await inboxOf(LULU)], [[how], []]);
    });
  }

  it("is said so in older dialects too", async () => {
    const older = { role: "user", kind: "message", messageId: "m", parts: [{ kind: "text", text: "旧" }] };
    const metadata = { relay_target_agent_id: ZHIWEI };
    await rpc("/a2a", "message/send", { message: older, metadata, configuration: { blocking: false } });
    const oldest = {
      id: "my-1",
      message: { role: "user", parts: [{ type: "text", text: "更旧" }] },
      metadata,
    };
    await rpc("/a2a", "tasks/send", oldest);
    assert.deepEqual(await inboxOf(ZHIWEI), ["旧", "更旧"]);
  });

  it("is known at the relay's endpoint from the task", async () => {
    const sent = await rpc("/a2a", "SendMessage", {
      message: message("记得吗"),
      tenant: LULU,
      configuration: NOW,
    });
    const id = taskOf(sent);
    assert.equal((await rpc("/a2a", "GetTask", { id })).result?.["id"], id);
    taskOf(
      await rpc("/a2a", "SendMessage", { message: message("还有", { taskId: id }), configuration: NOW }),
    );
    assert.deepEqual(await inboxOf(LULU), ["记得吗", "还有"]);
    const body = { jsonrpc: "2.0", id: 1, method: "SubscribeToTask", params: { id } };
    await using stream = await A2aEvents.open(relay.url, { method: "POST", path: "/a2a", body });
    await stream.take(1);
    const canceled = await rpc("/a2a", "CancelTask", { id });
    assert.deepEqual(
      canceled.result?.["status"] && (canceled.result["status"] as { state: string }).state,
      "TASK_STATE_CANCELED",
    );
    assert.equal((await stream.rest()).length, 1);
  });

  it("must be said where tasks are listed", async () => {
    assert.equal((await rpc("/a2a", "ListTasks", {})).error?.code, -32004);
    assert.ok((await rpc("/a2a", "ListTasks", { tenant: LULU })).result?.["tasks"]);
  });

  it("is refused when the name is unknown, at every address alike", async () => {
    const said = async (answer: WireAnswer) => [answer.status, /"message":"([^"]+)"/.exec(answer.text)?.[1]];
    const call = {
      jsonrpc: "2.0",
      id: 1,
      method: "SendMessage",
      params: { message: message("x"), configuration: NOW },
    };
    const named = { ...call, params: { ...call.params, tenant: "missing" } };
    const path = await said(await relay.call("POST", "/agents/missing/a2a", call));
    const field = await said(await relay.call("POST", "/a2a", named));
    const rest = await said(await relay.call("POST", "/agents/missing/a2a/message:send", call.params));
    assert.equal(path[0], 404);
    assert.deepEqual(field, path);
    assert.deepEqual(rest, path);
  });

  it("is the agent of the path, whatever the tenant field says", async () => {
    const params = { message: message("在路上"), tenant: LULU, configuration: NOW };
    taskOf(await rpc(`/agents/${ZHIWEI}/a2a`, "SendMessage", params));
    assert.deepEqual([await inboxOf(ZHIWEI), await inboxOf(LULU)], [["在路上"], []]);
  });

  it("may stand before what is asked for over REST, as tenants do", async () => {
    const body = { message: message("租户"), configuration: NOW };
    const path = `/agents/${ZHIWEI}/a2a/${ZHIWEI}/message:send`;
    const { task } = (await relay.ok("POST", path, body)) as { readonly task: { readonly id: string } };
    assert.deepEqual(await inboxOf(ZHIWEI), ["租户"]);
    for (const prefix of ["", `${ZHIWEI}/`, "v1/"]) {
      const shown = (await relay.ok("GET", `/agents/${ZHIWEI}/a2a/${prefix}tasks/${task.id}`)) as {
        readonly id: string;
      };
      assert.equal(shown.id, task.id);
    }
    await relay.ok("POST", `/agents/${ZHIWEI}/a2a/${ZHIWEI}/tasks/${task.id}:cancel`, {});
  });

  it("is known by every name that the agent has", async () => {
    for (const name of ["知微", ZHIWEI, encodeURIComponent("知微")]) {
      const { json } = await relay.call("POST", `/agents/${name}/a2a/message:send`, {
        message: message(name),
        configuration: NOW,
      });
      assert.ok((json as { readonly task?: object }).task, name);
    }
  });
});
