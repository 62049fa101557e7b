import { AgentService, type AgentSettings } from "./agents/agent-service.ts";
import { Directory } from "./agents/directory.ts";
import type { Archive } from "./environment/archive.ts";
import type { Clock } from "./environment/clock.ts";
import type { Identifiers } from "./environment/identifiers.ts";
import { Readiness } from "./environment/readiness.ts";
import type { RelayStore } from "./environment/relay-store.ts";
import { JournalService } from "./journal/journal-service.ts";
import { Retention } from "./journal/retention.ts";
import { MailboxService } from "./mailboxes/mailbox-service.ts";
import { RepairService } from "./mailboxes/repair-service.ts";
import { Sweep } from "./mailboxes/sweep.ts";
import { MessageService } from "./messages/message-service.ts";
import { TaskService } from "./tasks/task-service.ts";

export interface CoreParts {
  readonly store: RelayStore;
  readonly clock: Clock;
  readonly ids: Identifiers;
  readonly archive: Archive;
}

export interface CoreSettings extends AgentSettings {
  readonly mailboxOpenMax: number;
  readonly leaseAttemptsMax: number;
  readonly mailRetentionMs: number;
  readonly journalRetentionMs: number;
}

/** All rules of the relay, put together once. Every wire calls these and nothing else. */
export interface RelayCore {
  readonly agents: AgentService;
  readonly journal: JournalService;
  readonly mailboxes: MailboxService;
  readonly messages: MessageService;
  readonly readiness: Readiness;
  readonly repairs: RepairService;
  readonly retention: Retention;
  readonly sweep: Sweep;
  readonly tasks: TaskService;
}

export function createCore(given: CoreParts, settings: CoreSettings): RelayCore {
  const parts = { ...given, directory: new Directory(given.store) };
  return {
    agents: new AgentService(parts, settings),
    journal: new JournalService(parts),
    mailboxes: new MailboxService(parts, settings),
    messages: new MessageService(parts, settings),
    readiness: new Readiness(parts),
    repairs: new RepairService(parts, settings),
    retention: new Retention(parts, settings),
    sweep: new Sweep(parts, settings),
    tasks: new TaskService(parts, settings),
  };
}
