import { VERSION } from "../server/version.ts";
import { CommandLine } from "./command-line/command-line.ts";
import { type ExitCode, reportFailure } from "./command-line/exit.ts";
import { addA2a } from "./commands/a2a/a2a.ts";
import { addCapabilities } from "./commands/access/capabilities.ts";
import { addKeys } from "./commands/access/keys.ts";
import { addTenants } from "./commands/access/tenants.ts";
import { addAgent } from "./commands/agents/agent.ts";
import { addAgents, addContacts } from "./commands/agents/agents.ts";
import { addPush } from "./commands/agents/push.ts";
import { addTask } from "./commands/agents/task.ts";
import { addWebhook } from "./commands/agents/webhook.ts";
import { addAudit } from "./commands/journal/audit.ts";
import { addEvents } from "./commands/journal/events.ts";
import { addTimeline } from "./commands/journal/timeline.ts";
import { addAck } from "./commands/messages/ack.ts";
import { addInbox } from "./commands/messages/inbox.ts";
import { addPoll } from "./commands/messages/poll.ts";
import { addReply } from "./commands/messages/reply.ts";
import { addSend } from "./commands/messages/send.ts";
import { addShow } from "./commands/messages/show.ts";
import { addThreads } from "./commands/messages/threads.ts";
import { addWait } from "./commands/messages/wait.ts";
import { addBackup } from "./commands/operate/backup.ts";
import { addConfig } from "./commands/operate/config.ts";
import { addDoctor } from "./commands/operate/doctor.ts";
import { addExport } from "./commands/operate/export.ts";
import { addImport } from "./commands/operate/import.ts";
import { addMigrate } from "./commands/operate/migrate.ts";
import { addForceError, addRequeue, addRetryStale } from "./commands/operate/repair.ts";
import { addServe } from "./commands/operate/serve.ts";
import { addStatus } from "./commands/operate/status.ts";
import { addWatch } from "./commands/watch/watch.ts";
import type { CliIo } from "./terminal/output.ts";

/**
 * The command line. Each folder imports only those before it: `terminal` (text, tables, output), `command-line`
 * (options, context, exit codes), `following` (streams and retries), `commands` (a file per command). Commands call a
 * relay through the client; `serve` and those that work on its data (`migrate`, `backup`, `export`, `import`) load the
 * server.
 */

/** Runs one command line, e.g. `["send", "--from", …]`, and returns its exit code. Uses no globals. */
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

type AddCommand = (line: CommandLine) => void;

/** In the order of the help. */
const GROUPS: readonly (readonly [heading: string, commands: readonly AddCommand[]])[] = [
  ["Relay:", [addServe, addConfig, addMigrate, addDoctor, addBackup, addExport, addImport]],
  [
    "Messages:",
    [addSend, addInbox, addPoll, addWatch, addWait, addAck, addReply, addShow, addThreads, addTimeline],
  ],
  ["Agents and tasks:", [addAgents, addAgent, addContacts, addPush, addTask, addWebhook]],
  ["Keys and tenants:", [addKeys, addTenants]],
  [
    "Operators:",
    [addStatus, addEvents, addAudit, addCapabilities, addRequeue, addForceError, addRetryStale, addA2a],
  ],
];

export function addCommands(line: CommandLine): void {
  const { program } = line;
  program
    .description("A durable message relay for AI agents.")
    .version(VERSION, "-V, --version", "print the version")
    .addHelpText("after", "\nExamples:\n  $ a2a-relay serve\n  $ a2a-relay help send");
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const add of commands) add(line);
  }
}
