import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "../../../testing/fake-clock.ts";
import {
  afterFailure,
  attemptsAllowed,
  type Circuit,
  CIRCUIT_FAILURES_MAX,
  CLOSED,
  openedUntil,
} from "./circuit-breaker.ts";

function failing(times: number, circuit: Circuit = CLOSED): Circuit {
  return Array.from({ length: times }).reduce<Circuit>((each) => afterFailure(each, NOON_MS), circuit);
}

describe("the circuit of an endpoint", () => {
  it("stays closed for a few failures and opens at the fifth in a row", () => {
    for (let failures = 1; failures < CIRCUIT_FAILURES_MAX; failures += 1) {
      const circuit = failing(failures);
      assert.deepEqual(circuit, { failures, openUntilMs: null });
      assert.equal(attemptsAllowed(circuit, NOON_MS, 8), 8);
    }
    assert.deepEqual(failing(5), { failures: 5, openUntilMs: NOON_MS + 30_000 });
  });

  it("lets nothing through while it is open, one probe at the very moment it is over, all when closed", () => {
    const circuit = failing(5);
    assert.equal(attemptsAllowed(circuit, NOON_MS, 8), 0);
    assert.equal(attemptsAllowed(circuit, NOON_MS + 29_999, 8), 0);
    assert.equal(attemptsAllowed(circuit, NOON_MS + 30_000, 8), 1);
    assert.equal(attemptsAllowed(circuit, NOON_MS + 3_600_000, 8), 1);
    assert.equal(attemptsAllowed(CLOSED, NOON_MS, 8), 8);
  });

  it("opens for twice as long after each failed probe, ten minutes at most", () => {
    let circuit = failing(5);
    const openMs: number[] = [];
    for (let probe = 0; probe < 8; probe += 1) {
      const nowMs = circuit.openUntilMs ?? 0;
      circuit = afterFailure(circuit, nowMs);
      openMs.push((circuit.openUntilMs ?? 0) - nowMs);
    }
    assert.deepEqual(openMs, [60_000, 120_000, 240_000, 480_000, 600_000, 600_000, 600_000, 600_000]);
  });

  it("does not count what was under way when it opened", () => {
    const open = failing(5);
    assert.deepEqual(failing(7, open), open);
  });

  it("stays open for as long as the receiver asks, and never shorter than without that", () => {
    const asked = openedUntil(failing(1), NOON_MS + 60_000);
    assert.deepEqual(asked, { failures: 1, openUntilMs: NOON_MS + 60_000 });
    assert.equal(attemptsAllowed(asked, NOON_MS + 59_999, 8), 0);
    assert.equal(attemptsAllowed(asked, NOON_MS + 60_000, 8), 1);
    assert.deepEqual(openedUntil(failing(5), NOON_MS + 1_000), failing(5));
  });

  it("does not overflow however often an endpoint fails", () => {
    const circuit = { failures: 100_000, openUntilMs: NOON_MS };
    assert.deepEqual(afterFailure(circuit, NOON_MS), { failures: 100_001, openUntilMs: NOON_MS + 600_000 });
  });
});
