import { VERSION } from "../server/version.ts";
import type { CommandLine } from "./command-line/command-line.ts";
import { addA2a } from "./commands/a2a/a2a.ts";
import { addAck } from "./commands/messages/ack.ts";
import { addAgent } from "./commands/agents/agent.ts";
import { addAgents } from "./commands/agents/agents.ts";
import { addAudit } from "./commands/journal/audit.ts";
import { addCapabilities } from "./commands/access/capabilities.ts";
import { addConfig } from "./commands/operate/config.ts";
import { addContacts } from "./commands/agents/contacts.ts";
import { addDoctor } from "./commands/operate/doctor.ts";
import { addEvents } from "./commands/journal/events.ts";
import { addForceError } from "./commands/operate/force-error.ts";
import { addInbox } from "./commands/messages/inbox.ts";
import { addKeys } from "./commands/access/keys.ts";
import { addPoll } from "./commands/messages/poll.ts";
import { addPush } from "./commands/agents/push.ts";
import { addReply } from "./commands/messages/reply.ts";
import { addRequeue } from "./commands/operate/requeue.ts";
import { addRetryStale } from "./commands/operate/retry-stale.ts";
import { addSend } from "./commands/messages/send.ts";
import { addServe } from "./commands/operate/serve.ts";
import { addShow } from "./commands/messages/show.ts";
import { addStatus } from "./commands/operate/status.ts";
import { addTask } from "./commands/agents/task.ts";
import { addTenants } from "./commands/access/tenants.ts";
import { addThreads } from "./commands/messages/threads.ts";
import { addTimeline } from "./commands/journal/timeline.ts";
import { addWait } from "./commands/messages/wait.ts";
import { addWatch } from "./commands/watch/watch.ts";
import { addWebhook } from "./commands/agents/webhook.ts";

type AddCommand = (line: CommandLine) => void;

/** In the order of the help: what people do first comes first. */
const GROUPS: readonly (readonly [heading: string, commands: readonly AddCommand[]])[] = [
  ["Relay:", [addServe, addConfig, addDoctor]],
  [
    "MailboxMessage:",
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
    .description("A post office for AI agents.")
    .version(VERSION, "-V, --version", "print the version")
    .addHelpText("after", "\nExamples:\n  $ a2a-relay serve\n  $ a2a-relay help send");
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(heading);
    for (const add of commands) add(line);
  }
}
