import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OriginPools } from "./origin-pools.ts";

const origin = (number: number): string => `http://n${number}.example`;

describe("connections by origin", () => {
  it("are kept for those that were used last", async () => {
    await using pools = new OriginPools((_to, report) => report(new Error("no connections here"), null));
    const [oldest, second] = [pools.of(origin(0)), pools.of(origin(1))];
    for (let number = 2; number < 256; number += 1) pools.of(origin(number));
    assert.equal(pools.of(origin(0)), oldest);
    pools.of(origin(256));
    assert.deepEqual([oldest.closed, second.closed], [false, true]);
    assert.notEqual(pools.of(origin(1)), second);
    assert.equal(pools.of(origin(0)), oldest);
  });

  it("are all closed in the end", async () => {
    const pools = new OriginPools((_to, report) => report(new Error("no connections here"), null));
    const all = Array.from({ length: 300 }, (_, number) => pools.of(origin(number)));
    await pools[Symbol.asyncDispose]();
    assert.ok(all.every(({ destroyed }) => destroyed));
  });
});
