import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DELIVERY_STATES, isSettled, OPEN_DELIVERY_STATES, SETTLED_DELIVERY_STATES } from "./delivery.ts";
import { isTerminal, TASK_STATES, TERMINAL_TASK_STATES } from "./task.ts";

describe("the states", () => {
  it("of a delivery are open or settled, never both", () => {
    assert.deepEqual([...DELIVERY_STATES].filter(isSettled), [...SETTLED_DELIVERY_STATES]);
    assert.deepEqual(
      DELIVERY_STATES.filter((state) => !isSettled(state)),
      [...OPEN_DELIVERY_STATES],
    );
  });

  it("of a task are terminal or not", () => {
    assert.deepEqual([...TASK_STATES].filter(isTerminal), [...TERMINAL_TASK_STATES]);
  });
});
