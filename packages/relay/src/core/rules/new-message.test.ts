import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { aMessage } from "../../../testing/records.ts";
import { messageOf } from "../mechanisms/stored-json.ts";
import { type NewMessage, createMessage } from "./new-message.ts";

describe("a message as it is kept", () => {
  it("has its members in one order, whatever the sender's, and the sender's own behind them", () => {
    const more = { own: "自己的", urgency: "high", thread_id: "another", to: "another" };
    const { message, changes } = createMessage(aMessage({ replyTo: "msg_零", taskId: "task", more }));
    assert.deepEqual(Object.keys(message), [
      "version",
      "id",
      "from",
      "to",
      "type",
      "subject",
      "body",
      "created_at",
      "urgency",
      "needs_reply",
      "reply_to",
      "thread_id",
      "task_id",
      "status",
      "own",
    ]);
    const { to, urgency, thread_id: threadId, own } = message;
    assert.deepEqual([to, urgency, threadId, own], ["知微@known-blocks1", "high", "thread_一", "自己的"]);
    assert.deepEqual(changes.messages.map(messageOf), [message]);
  });

  it("inherits nothing from what its sender calls __proto__", () => {
    const more = JSON.parse(`{"__proto__":{"task_id":"邪"},"own":1}`) as NewMessage["more"];
    const { message, changes } = createMessage(aMessage({ more }));
    assert.equal(Object.getPrototypeOf(message), Object.prototype);
    assert.equal(message.task_id, undefined);
    assert.equal(message["own"], 1);
    assert.doesNotMatch(changes.messages[0]?.json ?? "邪", /邪/);
  });

  it("is measured in bytes, whatever its script", () => {
    const roomChars = Math.floor(LIMITS.bodyBytesMax / Buffer.byteLength("长"));
    const fits = "长".repeat(roomChars);
    assert.equal(createMessage(aMessage({ body: fits })).message.body, fits);
    const long = fits + "长".repeat(LIMITS.messageBytesAdded);
    assert.throws(() => createMessage(aMessage({ body: long })), { code: "too_large" });
  });
});
