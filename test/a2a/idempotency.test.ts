import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { IDEMPOTENCY_KEY_EXTENSION, V1_DIALECT } from "@a2a-relay/protocol";
import type { Task } from "@a2a-js/sdk";
import { type Binding, BINDINGS, isRefusal, type Refusal } from "../support/a2a-bindings.ts";
import { A2aEvents } from "../support/a2a-events.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";

const AGENT = "zhiwei";
const NOW = { configuration: { returnImmediately: true } };

function message(text: string, more: object = {}): object {
  return { message: { messageId: "同一个", role: "ROLE_USER", parts: [{ text }], ...more }, ...NOW };
}

describe("a message that is sent again", { timeout: 20_000 }, () => {
  let relay: A2aRelay;
  before(async () => {
    relay = await A2aRelay.open();
    await relay.register(AGENT);
  });
  after(() => relay[Symbol.asyncDispose]());

  const send = (binding: Binding, params: object, key?: string) =>
    binding.ask(relay, AGENT, {
      operation: "send",
      params: { ...params },
      ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
    });

  const taskIdIn = (answer: Refusal | { readonly result: unknown }): string => {
    assert.ok(!isRefusal(answer), JSON.stringify(answer));
    const { task, payload } = answer.result as {
      readonly task?: { readonly id: string };
      readonly payload?: { readonly value: Task };
    };
    return task?.id ?? payload?.value.id ?? assert.fail(JSON.stringify(answer));
  };

  for (const binding of BINDINGS) {
    it(`under the same key is the same task, over ${binding.name}`, async () => {
      const key = `钥匙-${binding.name}`.replaceAll(/[^\x21-\x7e]/g, "k");
      const first = taskIdIn(await send(binding, message("一次"), key));
      const again = taskIdIn(await send(binding, message("一次"), key));
      assert.equal(again, first);
      const other = await send(binding, message("另一件事"), key);
      assert.ok(isRefusal(other));
      assert.equal(other.reason, "CONFLICT");
    });

    it(`with the same message id is another task, over ${binding.name}`, async () => {
      const first = taskIdIn(await send(binding, message("一样的话")));
      const again = taskIdIn(await send(binding, message("一样的话")));
      assert.notEqual(again, first);
    });
  }

  it("under the same key is the same task across bindings, dialects and a restart", async () => {
    const ids = new Set<string>();
    for (const binding of BINDINGS) ids.add(taskIdIn(await send(binding, message("处处一样"), "everywhere")));
    await relay.restart();
    for (const binding of BINDINGS) ids.add(taskIdIn(await send(binding, message("处处一样"), "everywhere")));
    assert.equal(ids.size, 1);
  });

  it("under the same key gives the current state of the task, also on a stream", async () => {
    await relay.register("other");
    const path = "/agents/other/a2a/message:stream";
    const headers = { "idempotency-key": "stream-1" };
    const body = message("流");
    {
      await using first = await A2aEvents.open(relay.url, { method: "POST", path, body, headers });
      await first.take(1);
    }
    await (await MailboxAgent.next(relay, "other")).complete({ text: "好" });
    await using again = await A2aEvents.open(relay.url, { method: "POST", path, body, headers });
    const events = await again.rest();
    assert.match(JSON.stringify(events), /TASK_STATE_COMPLETED/);
    assert.equal(events.length, 1);
  });

  it("adds to its task each time, whatever the message id, but once under a key", async () => {
    await relay.register("third");
    const path = "/agents/third/a2a";
    const rpc = async (params: object, headers = {}) => {
      const call = { jsonrpc: "2.0", id: 1, method: V1_DIALECT.methods.send, params };
      const { json } = await relay.call("POST", path, call, headers);
      return (
        json as {
          readonly result: { readonly task: { readonly id: string; readonly history?: readonly object[] } };
        }
      ).result.task;
    };
    const { id } = await rpc(message("开头"));
    await rpc(message("又", { taskId: id }));
    await rpc(message("又", { taskId: id }));
    const headers = { "idempotency-key": "add-1" };
    await rpc(message("只一次", { taskId: id }), headers);
    const { history = [] } = await rpc(message("只一次", { taskId: id }), headers);
    const texts = history.map(
      (said) => (said as { readonly parts: readonly { readonly text: string }[] }).parts[0]?.text,
    );
    assert.deepEqual(texts, ["开头", "又", "又", "只一次"]);
  });

  it("is told that keys count, where it names the extension", async () => {
    const headers = { "a2a-extensions": `${IDEMPOTENCY_KEY_EXTENSION}, https://extensions.example/unknown` };
    const answer = await relay.call("POST", `/agents/${AGENT}/a2a/message:send`, message("扩展"), headers);
    assert.equal(answer.headers.get("a2a-extensions"), IDEMPOTENCY_KEY_EXTENSION);
  });
});
