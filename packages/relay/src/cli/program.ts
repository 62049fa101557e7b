import type { CliIo } from "./terminal/cli-io.ts";
import { CommandLine } from "./command-line/command-line.ts";
import { addCommands } from "./commands-index.ts";
import type { ExitCode } from "./command-line/exit-codes.ts";
import { reportFailure } from "./command-line/failure.ts";

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
