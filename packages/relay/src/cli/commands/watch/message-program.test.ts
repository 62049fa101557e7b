import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import type { MailboxItem, Message } from "@a2a-relay/protocol";
import {
  CAPTURED_BYTES_MAX,
  type ProgramOptions,
  type ProgramResult,
  runMessageProgram,
} from "./message-program.ts";

const MESSAGE: Message = {
  version: "a2a.v1",
  id: "m-1",
  from: "lulu@kamac",
  to: "zhiwei@known-blocks1",
  type: "request",
  subject: "$(touch owned); `id`",
  body: "知微你好 $(id) `id` ${HOME} \"'\n",
  created_at: "2026-05-08T08:30:00Z",
  thread_id: "t-1",
  urgency: "normal",
  needs_reply: true,
};
const ITEM: MailboxItem = {
  id: "m-1",
  message_id: "m-1",
  task_id: "task-1",
  status: "PENDING",
  sender_agent_id: "lulu@kamac",
  message: MESSAGE,
  a2a_payload: {},
  lease: { id: "lease-1", attempt: 1, leased_at: "2026-05-08T08:30:01Z" },
};

function run(code: string, given: Partial<ProgramOptions> = {}): Promise<ProgramResult> {
  return runMessageProgram({
    argv: [process.execPath, "-e", code],
    item: ITEM,
    env: {},
    capture: true,
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
    signal: new AbortController().signal,
    ...given,
  });
}

describe("runMessageProgram", () => {
  it("hands over the message as JSON on stdin", async () => {
    const result = await run("process.stdin.pipe(process.stdout)");
    assert.equal(result.kind, "exited");
    assert.deepEqual(JSON.parse(result.kind === "exited" ? result.stdout : ""), MESSAGE);
  });

  it("tells what the message is in the environment, as values", async () => {
    const names = [
      "A2A_MESSAGE_ID",
      "A2A_FROM",
      "A2A_TO",
      "A2A_TYPE",
      "A2A_THREAD_ID",
      "A2A_TASK_ID",
      "A2A_LEASE_ID",
    ];
    const result = await run(
      `console.log(${JSON.stringify(names)}.map((name) => process.env[name]).join(" "))`,
    );
    const stdout = "m-1 lulu@kamac zhiwei@known-blocks1 request t-1 task-1 lease-1";
    assert.deepEqual(result, { kind: "exited", code: 0, stdout });
  });

  it("involves no shell", async () => {
    const argv = [process.execPath, "-p", "process.argv.slice(1).join('|')", "--", "$(id)", ";", "`id`", "*"];
    assert.deepEqual(await run("", { argv }), { kind: "exited", code: 0, stdout: "$(id)|;|`id`|*" });
  });

  it("reports the exit code of a program that does not read its stdin", async () => {
    const item = { ...ITEM, message: { ...MESSAGE, body: "x".repeat(500_000) } };
    assert.deepEqual(await run("process.exit(7)", { item }), { kind: "exited", code: 7, stdout: "" });
  });

  it("passes output on when it is not captured", async () => {
    const stdout = new PassThrough();
    const result = await run("console.log('你好')", { capture: false, stdout });
    assert.deepEqual(result, { kind: "exited", code: 0, stdout: "" });
    assert.equal(String(stdout.read()), "你好\n");
  });

  it("keeps no more output than a message can hold", async () => {
    const result = await run(`process.stdout.write("x".repeat(${CAPTURED_BYTES_MAX + 1}))`);
    assert.deepEqual(result, { kind: "too_much_output" });
  });

  it("ends the program when told to, and says why", async () => {
    const ending = new AbortController();
    const stdout = new PassThrough();
    stdout.once("data", () => ending.abort("its time limit"));
    const result = await run("console.log('up'); setInterval(() => {}, 1000)", {
      capture: false,
      stdout,
      signal: ending.signal,
    });
    assert.deepEqual(result, { kind: "killed", by: "its time limit" });
  });

  it("rejects when there is no such program", async () => {
    const argv = ["./no-such-program"];
    await assert.rejects(run("", { argv }), {
      code: "invalid_argument",
      message: /cannot start ".\/no-such-program"/,
    });
  });
});
