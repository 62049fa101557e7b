import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideVerdict, pauseAfterFailuresMs, type VerdictContext } from "./exec-policy.ts";
import type { ProgramResult } from "./message-program.ts";

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

  it("replies to other mail only with words", () => {
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
