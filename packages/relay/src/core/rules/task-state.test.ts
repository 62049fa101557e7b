import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isTerminal, TASK_STATES, TERMINAL_TASK_STATES } from "@a2a-relay/protocol";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import { aTask } from "../../../testing/records.ts";
import { refused } from "../../../testing/refusal.ts";
import { assertInTime, assertUnfinished, moveTask, TASK_TRANSITIONS } from "./task-state.ts";

describe("the task machine", () => {
  it("lets an unfinished task go anywhere and a finished one nowhere", () => {
    for (const state of TASK_STATES) {
      assert.deepEqual(
        new Set(TASK_TRANSITIONS[state]),
        new Set(isTerminal(state) ? [] : TASK_STATES),
        state,
      );
    }
  });

  for (const from of TASK_STATES) {
    for (const to of TASK_STATES) {
      const code = from === "canceled" ? "task_canceled" : "task_finished";
      if (isTerminal(from)) {
        it(`refuses to move a ${from} task to ${to}`, async () => {
          const error = await refused(() => moveTask(aTask({ state: from }), to, NOON_MS), code);
          assert.deepEqual(error.details, { task_id: "task1", state: from });
        });
      } else {
        it(`moves a ${from} task to ${to} and notes the time`, () => {
          const before = aTask({ state: from });
          const after = moveTask(before, to, NOON_MS + 7);
          assert.deepEqual(after, { ...before, state: to, updatedAtMs: NOON_MS + 7 });
        });
      }
    }
  }
});

describe("assertUnfinished", () => {
  it("tells a canceled task from one that has its result", async () => {
    for (const state of TERMINAL_TASK_STATES) {
      const code = state === "canceled" ? "task_canceled" : "task_finished";
      await refused(() => assertUnfinished(aTask({ state })), code);
    }
    for (const state of TASK_STATES) if (!isTerminal(state)) assertUnfinished(aTask({ state }));
  });
});

describe("assertInTime", () => {
  it("holds until the millisecond before the deadline, and is over at that very one", async () => {
    const task = aTask({ deadlineMs: NOON_MS });
    assertInTime(task, NOON_MS - 1);
    await refused(() => assertInTime(task, NOON_MS), "task_finished", /2026-05-08T12:00:00.000Z/);
  });

  it("never ends a task without a deadline", () => {
    assertInTime(aTask(), Number.MAX_SAFE_INTEGER);
  });
});
