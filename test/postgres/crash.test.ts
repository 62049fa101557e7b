import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { describe, it } from "node:test";
import { reportLines } from "../crash/report.ts";
import { threeRelaysRun } from "../crash/three-relays-run.ts";

/** One of each planned fault. `npm run test:crash -- --postgres` has the full size. */
const FAULTS = 10;

describe("three relays on one PostgreSQL database", { timeout: 300_000 }, () => {
  it(`lose nothing they answered while one after the other fails, ${FAULTS} times`, async (test) => {
    const seed = randomInt(2 ** 32);
    test.diagnostic(
      `seed ${seed}; again with: npm run test:crash -- --postgres --kills ${FAULTS} --seed ${seed}`,
    );
    const report = await threeRelaysRun({ kills: FAULTS, seed, say: () => undefined });
    const lines = reportLines(report);
    for (const line of lines) test.diagnostic(line);
    assert.equal(report.violations.length, 0, lines.join("\n"));
    for (const [invariant, count] of report.checked)
      assert.ok(count > 0, `nothing was compared: ${invariant}`);
  });
});
