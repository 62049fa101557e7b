import type { CliIo } from "./cli-io.ts";
import { CommandLine } from "./command-line.ts";
import { addCommands } from "./commands/index.ts";
import type { ExitCode } from "./exit-codes.ts";
import { reportFailure } from "./failure.ts";

/** Runs one command line, e.g. `["send", "--from", …]`, and answers with its exit code. No globals. */
export async function runCli(argv: readonly string[], io: CliIo): Promise<ExitCode> {
  const line = new CommandLine(io);
  addCommands(line);
  try {
    await line.program.parseAsync(argv, { from: "user" });
    return line.exitCode;
  } catch (reason) {
    return await reportFailure(reason, io);
  }
}
