import { VERSION } from "../../server/version.ts";
import type { CommandLine } from "../command-line.ts";
import { addA2a } from "./a2a.ts";
import { addAck } from "./ack.ts";
import { addAgent } from "./agent.ts";
import { addAgents } from "./agents.ts";
import { addAudit } from "./audit.ts";
import { addCapabilities } from "./capabilities.ts";
import { addConfig } from "./config.ts";
import { addContacts } from "./contacts.ts";
import { addDoctor } from "./doctor.ts";
import { addEvents } from "./events.ts";
import { addForceError } from "./force-error.ts";
import { addInbox } from "./inbox.ts";
import { addKeys } from "./keys.ts";
import { addPoll } from "./poll.ts";
import { addPush } from "./push.ts";
import { addReply } from "./reply.ts";
import { addRequeue } from "./requeue.ts";
import { addRetryStale } from "./retry-stale.ts";
import { addSend } from "./send.ts";
import { addServe } from "./serve.ts";
import { addShow } from "./show.ts";
import { addStatus } from "./status.ts";
import { addTask } from "./task.ts";
import { addTenants } from "./tenants.ts";
import { addThreads } from "./threads.ts";
import { addTimeline } from "./timeline.ts";
import { addWait } from "./wait.ts";
import { addWatch } from "./watch.ts";
import { addWebhook } from "./webhook.ts";

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
