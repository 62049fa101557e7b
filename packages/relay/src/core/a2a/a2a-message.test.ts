import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { V1_DIALECT } from "@a2a-relay/protocol";
import { askingNow, callerOf } from "../../../testing/a2a-asking.ts";
import { coreOnMemory } from "../../../testing/core-on-memory.ts";

describe("the answer to a message that nobody waits on", () => {
  it("is the same as text as it is as an object, whatever was said", async () => {
    await using core = await coreOnMemory();
    for (const text of ["请译成英文", '"parts":[{"text":"x"}] \\" \\', "\u2028\t\n 😀", "}],"]) {
      const message = {
        messageId: text,
        role: "ROLE_USER",
        parts: [{ text }],
        contextId: "上下文",
        metadata: { body: text, parts: [{ text: "" }], history: null },
        extensions: ["https://example.com/扩展"],
      };
      const { json, ...result } = await core.a2a.send(callerOf(core.lulu), askingNow("", { message }), {});
      assert.ok(json);
      assert.deepEqual(JSON.parse(json), V1_DIALECT.writeResult("send", result));
      assert.deepEqual(result.task?.history?.[0]?.parts, [{ text }]);
    }
  });

  it("is no text where the message does not hold it as it is to be shown", async () => {
    await using core = await coreOnMemory();
    const jsonOf = async (said: object, version: "1.0" | "0.3" = "1.0"): Promise<string | undefined> =>
      (await core.a2a.send(callerOf(core.lulu, { version }), askingNow("付款", said), {})).json;
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ data: null }, { text: "二" }] };
    assert.equal(await jsonOf({ message }), undefined);
    assert.equal(await jsonOf({ configuration: { returnImmediately: true, historyLength: 0 } }), undefined);
    assert.equal(await jsonOf({}, "0.3"), undefined);
  });
});
