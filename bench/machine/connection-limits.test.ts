import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planConnections, readConnectionLimits } from "./connection-limits.ts";

const LIMITS = { openFilesMax: 20_000, portsOfAddress: 28_000, addressesMax: 250 };

describe("the plan of connections", () => {
  it("has as many as wanted, from wherever the system chooses, while one address has the ports", () => {
    assert.deepEqual(planConnections(10_000, LIMITS), { count: 10_000, localAddresses: [] });
    assert.deepEqual(planConnections(14_000, LIMITS), { count: 14_000, localAddresses: [] });
  });

  it("spreads over more addresses where one has not the ports for all to come back", () => {
    const limits = { ...LIMITS, portsOfAddress: 8_000 };
    assert.deepEqual(planConnections(10_000, limits), {
      count: 10_000,
      localAddresses: ["127.0.0.1", "127.0.0.2", "127.0.0.3"],
    });
  });

  it("is cut down to the files that may be open, with some left for others", () => {
    assert.equal(planConnections(10_000, { ...LIMITS, openFilesMax: 1_024 }).count, 524);
  });

  it("is cut down to the ports where there is no other address", () => {
    const limits = { ...LIMITS, portsOfAddress: 8_000, addressesMax: 1 };
    assert.deepEqual(planConnections(10_000, limits), { count: 4_000, localAddresses: [] });
  });

  it("says what to do where it would have none", () => {
    assert.throws(() => planConnections(10, { ...LIMITS, openFilesMax: 256 }), /only 256 files .* ulimit -n/);
  });

  it("can be made for this machine", () => {
    const { count } = planConnections(1, readConnectionLimits());
    assert.equal(count, 1);
  });
});
