import { spawn } from "node:child_process";
import { once } from "node:events";

/** What `npm run check` runs: these scripts of package.json beside each other. All of them, also when one fails. */

const SCRIPTS = ["types", "lint", "format"];

const codes = await Promise.all(SCRIPTS.map(run));
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;

/** Prints the output once the script has ended, so that outputs do not mix. */
async function run(script: string): Promise<number | null> {
  const child = spawn("npm", ["run", "--silent", script], {
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const [code] = (await once(child, "close")) as [number | null];
  process.stdout.write(`== ${script}: ${code === 0 ? "passed" : "failed"}\n${output}`);
  return code;
}
