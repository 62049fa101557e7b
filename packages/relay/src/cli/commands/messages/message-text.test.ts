import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Message } from "@a2a-relay/protocol";
import { messageLines } from "./message-text.ts";

const MESSAGE: Message = {
  version: "a2a.v1",
  id: "m-1",
  from: "lulu@kamac",
  to: "zhiwei@known-blocks1",
  type: "request",
  subject: "hello",
  body: "知微你好\nsecond line\n",
  created_at: "2026-05-08T08:30:00.000Z",
  thread_id: "t-1",
  urgency: "high",
  needs_reply: true,
};

const lines = (message: Message): readonly string[] =>
  messageLines({ message, task_id: "task-1" }, (_style, text) => text);

describe("messageLines", () => {
  it("shows who writes what to whom, and the body set in", () => {
    assert.deepEqual(lines(MESSAGE), [
      "request  lulu@kamac -> zhiwei@known-blocks1  2026-05-08T08:30:00Z  needs reply  high urgency",
      "hello",
      "id m-1  thread t-1  task task-1",
      "  知微你好",
      "  second line",
      "",
    ]);
  });

  it("lets no body pass for a header or steer the terminal", () => {
    const shown = lines({ ...MESSAGE, subject: "a\nb", body: "x\nrequest  root -> you\u001b[1A\rgone" });
    assert.equal(shown[1], "a␊b");
    assert.deepEqual(shown.slice(3), ["  x", "  request  root -> you␛[1A␍gone", ""]);
  });

  it("shows the text of parts, and counts what is not text", () => {
    const shown = lines({ ...MESSAGE, body: "", parts: [{ text: "你好" }, { data: {} }] });
    assert.deepEqual(shown.slice(3), ["  你好", "  [1 part that is not text; --json shows it]", ""]);
  });
});
