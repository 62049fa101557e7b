import type { Writable } from "node:stream";
import { processEnvironment } from "../config/setting-reader.ts";
import { EXIT } from "./command-line/exit.ts";
import { runCli } from "./program.ts";

const ending = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.on(name, () => {
    // The first signal asks to finish, the second one insists.
    if (ending.signal.aborted) process.exit(EXIT.interrupted);
    ending.abort();
  });
}
// A closed reader is noticed where the write is awaited.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: processEnvironment(),
  workingDirectory: process.cwd(),
  signal: ending.signal,
});
await Promise.all([flush(process.stdout), flush(process.stderr)]);
// A half-read stdin would keep the process alive.
process.exit(exitCode);

function flush(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) resolve();
    else stream.write("", () => resolve());
  });
}
