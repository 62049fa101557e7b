import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { crashRun } from "./crash-run.ts";
import { reportLines } from "./report.ts";

/** `npm run test:crash -- --kills 1000 --seed 7`: as many kills as one has patience for. */

const { values } = parseArgs({ options: { kills: { type: "string" }, seed: { type: "string" } } });
const kills = Number(values.kills ?? 200);
const seed = Number(values.seed ?? randomInt(2 ** 32));
if (!Number.isSafeInteger(kills) || kills < 1 || !Number.isSafeInteger(seed) || seed < 0) {
  process.stderr.write("usage: npm run test:crash -- [--kills 200] [--seed a number, else random]\n");
  process.exit(2);
}
console.log(`seed ${seed}, ${kills} kills`);
const report = await crashRun({ kills, seed, say: (line) => console.log(line) });
for (const line of reportLines(report)) console.log(line);
process.exitCode = report.violations.length === 0 ? 0 : 1;
