import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { describe, it } from "node:test";
import { crashRun } from "./crash-run.ts";
import { reportLines } from "./report.ts";

/** Two of each planned kill. `npm run test:crash` has the full size. */
const KILLS = 24;

describe("a relay that is killed while it is used", { timeout: 300_000 }, () => {
  it(`loses nothing it answered, ${KILLS} times over`, async (test) => {
    const seed = randomInt(2 ** 32);
    test.diagnostic(`seed ${seed}; again with: npm run test:crash -- --kills ${KILLS} --seed ${seed}`);
    const report = await crashRun({ kills: KILLS, seed, say: () => undefined });
    const lines = reportLines(report);
    for (const line of lines) test.diagnostic(line);
    assert.equal(report.violations.length, 0, lines.join("\n"));
    for (const [invariant, count] of report.checked)
      assert.ok(count > 0, `nothing was compared: ${invariant}`);
  });
});
