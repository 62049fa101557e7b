import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TASK_STATES } from "../model/task.ts";
import { A2A_STATES } from "./a2a-json.ts";
import { readA2aState, readTaskState, toA2aState, toTaskState, writePlainState } from "./state-names.ts";

describe("the names of states", () => {
  it("are one to one between the relay and A2A 1.0", () => {
    assert.deepEqual(TASK_STATES.map(toA2aState).toSorted(), A2A_STATES.toSorted());
    for (const state of TASK_STATES) assert.equal(toTaskState(toA2aState(state)), state);
    assert.equal(toA2aState("input-required"), "TASK_STATE_INPUT_REQUIRED");
  });

  it("are known in every spelling", () => {
    const spellings = ["input-required", "TASK_STATE_INPUT_REQUIRED", "input_required", "inputRequired", 6];
    for (const spelling of spellings) assert.equal(readTaskState(spelling), "input-required");
    for (const spelling of ["canceled", "cancelled", "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED", 5]) {
      assert.equal(readTaskState(spelling), "canceled");
    }
  });

  it("stay unchanged where no dialect has them", () => {
    for (const other of ["", "paused", "constructor", 0, 9, -1, null, undefined, {}]) {
      assert.equal(readTaskState(other), undefined);
    }
    assert.equal(readA2aState("paused"), "paused");
    assert.equal(writePlainState("paused"), "paused");
  });

  it("say that a state is unknown in the words of each version", () => {
    assert.equal(readA2aState("unknown"), "TASK_STATE_UNSPECIFIED");
    assert.equal(writePlainState("TASK_STATE_UNSPECIFIED"), "unknown");
  });
});
