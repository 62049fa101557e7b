import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crashRun } from "./crash-run.ts";
import { reportLines } from "./report.ts";
import { threeRelaysRun } from "./three-relays-run.ts";

/**
 * `npm run test:crash -- --kills 1000 --seed 7 --readers 1000`: the crash run and the slow readers at full size,
 * which `npm test` runs in small. With `--postgres` three relays on one PostgreSQL database are killed and cut off, and
 * there are no slow readers.
 */

const { values } = parseArgs({
  options: {
    kills: { type: "string" },
    seed: { type: "string" },
    readers: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
});
const kills = Number(values.kills ?? 200);
const readers = Number(values.readers ?? (values.postgres ? 0 : 1_000));
const seed = Number(values.seed ?? randomInt(2 ** 32));
if (![kills, readers, seed].every((value) => Number.isSafeInteger(value) && value >= 0)) {
  process.stderr.write(
    "usage: npm run test:crash -- [--kills 200] [--readers 1000] [--postgres] [--seed a number, else random]\n",
  );
  process.exit(2);
}
process.env["NODE_COMPILE_CACHE"] ??= join(tmpdir(), "a2a-relay-compile-cache");
process.exitCode = [await killed(), read()].every(Boolean) ? 0 : 1;

async function killed(): Promise<boolean> {
  if (kills === 0) return true;
  console.log(`seed ${seed}, ${kills} kills`);
  const run = values.postgres ? threeRelaysRun : crashRun;
  const report = await run({ kills, seed, say: (line) => console.log(line) });
  for (const line of reportLines(report)) console.log(line);
  return report.violations.length === 0;
}

function read(): boolean {
  if (readers === 0) return true;
  const file = join(import.meta.dirname, "..", "http", "slow-readers.test.ts");
  const { status } = spawnSync(process.execPath, ["--conditions=source", "--test", file], {
    env: { ...process.env, A2A_TEST_SLOW_READERS: String(readers) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return status === 0;
}
