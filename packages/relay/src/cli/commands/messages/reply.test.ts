import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("reply, threads and timeline", () => {
  it("answer a request in its thread, which completes its task", async () => {
    await using relay = await openCliRelay();
    const { receipt } = (await relay.json([...HELLO, "--type", "request"])) as {
      readonly receipt: { readonly message_id: string; readonly task_id: string; readonly thread_id: string };
    };
    await relay.ok(["reply", receipt.message_id, "--from", "zhiwei", "--body", "收到"]);
    assert.equal((await relay.client.task(receipt.task_id)).state, "completed");
    const { messages } = await relay.client.readMailbox(LULU);
    assert.equal(messages[0]?.message.subject, "Re: hello");
    assert.equal(messages[0]?.message.thread_id, receipt.thread_id);

    const threads = await relay.ok(["threads", "--agent", "lulu"]);
    assert.ok(threads.includes(receipt.thread_id));
    const timeline = await relay.ok(["timeline", receipt.thread_id]);
    assert.match(
      timeline,
      /message\.accepted +lulu@kamac .*request lulu@kamac -> zhiwei@known-blocks1: hello/,
    );
    assert.match(timeline, /task\.completed/);
    const markdown = await relay.ok(["timeline", receipt.thread_id, "--markdown"]);
    assert.match(
      markdown,
      /^# Timeline thread_\S+\n\n- 20\S+Z: message\.accepted; actor=lulu@kamac; message_id=msg_/,
    );
  });

  it("need a message to answer", async () => {
    await using relay = await openCliRelay();
    assert.equal((await relay.run(["reply", "--from", ZHIWEI, "--body", "x"])).code, 2);
    assert.equal((await relay.run(["reply", "no-such", "--from", ZHIWEI, "--body", "x"])).code, 1);
  });
});
