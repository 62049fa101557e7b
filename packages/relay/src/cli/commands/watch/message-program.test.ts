import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import type { MailboxItem, Message } from "@a2a-relay/protocol";
import {
  CAPTURED_BYTES_MAX,
  type ProgramOptions,
  type ProgramResult,
  runMessageProgram,
  decideVerdict,
  pauseAfterFailuresMs,
  type VerdictContext,
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

const context = (given: Partial<VerdictContext> = {}): VerdictContext => ({
  reply: false,
  isTask: false,
  attempt: 1,
  attemptsMax: undefined,
  ...given,
});
const exited = (code: number, stdout = ""): ProgramResult => ({ kind: "exited", code, stdout });

describe("decideVerdict", () => {
  it("acknowledges after exit code 0, whatever was printed", () => {
    assert.deepEqual(decideVerdict(exited(0, "chatter"), context({ isTask: true })), { act: "acknowledge" });
  });

  it("completes a task with the output when asked to reply, even with none", () => {
    const replying = context({ reply: true, isTask: true });
    assert.deepEqual(decideVerdict(exited(0, "完成"), replying), { act: "complete", text: "完成" });
    assert.deepEqual(decideVerdict(exited(0), replying), { act: "complete", text: "" });
  });

  it("replies to other messages only when it printed something", () => {
    const replying = context({ reply: true });
    assert.deepEqual(decideVerdict(exited(0, "hi"), replying), { act: "reply", text: "hi" });
    assert.deepEqual(decideVerdict(exited(0), replying), { act: "acknowledge" });
  });

  it("gives the message back after any failure, and says why", () => {
    const results: readonly ProgramResult[] = [
      exited(3, "half an answer"),
      { kind: "killed", by: "SIGKILL" },
      { kind: "too_much_output" },
    ];
    const whys = results.map((result) => decideVerdict(result, context({ reply: true, isTask: true })));
    assert.deepEqual(whys, [
      { act: "release", why: "the program ended with exit code 3" },
      { act: "release", why: "the program was ended by SIGKILL" },
      { act: "release", why: "the program printed more than a message can hold" },
    ]);
  });

  it("ends the message at the last attempt it was given", () => {
    const limited = { attemptsMax: 3 };
    assert.equal(decideVerdict(exited(1), context({ ...limited, attempt: 2 })).act, "release");
    assert.deepEqual(decideVerdict(exited(1), context({ ...limited, attempt: 3 })), {
      act: "fail",
      why: "the program ended with exit code 1 at attempt 3",
    });
  });
});

describe("pauseAfterFailuresMs", () => {
  it("doubles from a second to half a minute and starts anew after a success", () => {
    assert.deepEqual(
      [0, 1, 2, 3, 6, 7, 1_000].map(pauseAfterFailuresMs),
      [0, 1_000, 2_000, 4_000, 30_000, 30_000, 30_000],
    );
  });
});
