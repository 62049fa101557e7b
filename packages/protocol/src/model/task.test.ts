import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isTerminal, TASK_STATES, TERMINAL_TASK_STATES } from "./task.ts";

describe("the states of a task", () => {
  it("are terminal or not", () => {
    assert.deepEqual([...TASK_STATES].filter(isTerminal), [...TERMINAL_TASK_STATES]);
  });
});
