import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DELIVERY_STATES, isSettled, OPEN_DELIVERY_STATES, SETTLED_DELIVERY_STATES } from "./delivery.ts";

describe("the states of a delivery", () => {
  it("are open or settled, never both", () => {
    assert.deepEqual([...DELIVERY_STATES].filter(isSettled), [...SETTLED_DELIVERY_STATES]);
    assert.deepEqual(
      DELIVERY_STATES.filter((state) => !isSettled(state)),
      [...OPEN_DELIVERY_STATES],
    );
  });
});
