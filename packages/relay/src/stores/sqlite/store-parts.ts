import type { DatabaseSync } from "node:sqlite";
import { Access } from "./access.ts";
import { Agents } from "./agents.ts";
import { Capabilities } from "./capabilities.ts";
import { DeliveryQueue } from "./delivery-queue.ts";
import { Journal } from "./journal.ts";
import { Ledger, type Readers } from "./ledger.ts";
import { Mailboxes } from "./mailboxes.ts";
import { Messages } from "./messages.ts";
import { Nonces } from "./nonces.ts";
import { PairAccesses } from "./pair-accesses.ts";
import { Pushes } from "./pushes.ts";
import { RemoteTasks } from "./remote-tasks.ts";
import { ResultCache } from "./result-cache.ts";
import { Retention } from "./retention.ts";
import { TaskPushes } from "./task-pushes.ts";
import { TaskUpdates } from "./task-updates.ts";
import { Tasks } from "./tasks.ts";
import { Threads } from "./threads.ts";

/** The parts of a store, each over its own tables. */
export interface StoreParts {
  readonly access: Access;
  readonly agents: Agents;
  readonly capabilities: Capabilities;
  readonly journal: Journal;
  readonly ledger: Ledger;
  readonly mailboxes: Mailboxes;
  readonly messages: Messages;
  readonly nonces: Nonces;
  readonly pairAccesses: PairAccesses;
  readonly pushes: Pushes;
  readonly queue: DeliveryQueue;
  readonly remoteTasks: RemoteTasks;
  readonly resultCache: ResultCache;
  readonly retention: Retention;
  readonly tasks: Tasks;
  readonly taskPushes: TaskPushes;
  readonly taskUpdates: TaskUpdates;
  readonly threads: Threads;
}

export function createParts(database: DatabaseSync, readers: Readers): StoreParts {
  const ledger = new Ledger(database, readers);
  const agents = new Agents(database);
  const capabilities = new Capabilities(database);
  const messages = new Messages(database, ledger);
  const journal = new Journal(database, ledger);
  const mailboxes = new Mailboxes(database, ledger, messages, journal);
  const tasks = new Tasks(database);
  const taskPushes = new TaskPushes(database, ledger);
  const taskUpdates = new TaskUpdates(database, ledger);
  const pushes = new Pushes(database, ledger);
  const remoteTasks = new RemoteTasks(database, ledger);
  return {
    access: new Access(database),
    agents,
    capabilities,
    pairAccesses: new PairAccesses(agents, capabilities),
    journal,
    ledger,
    mailboxes,
    messages,
    nonces: new Nonces(database),
    pushes,
    queue: new DeliveryQueue(database, ledger),
    remoteTasks,
    resultCache: new ResultCache(database),
    retention: new Retention(database, {
      journal,
      messages,
      mailboxes,
      pushes,
      tasks,
      taskPushes,
      taskUpdates,
      remoteTasks,
    }),
    tasks,
    taskPushes,
    taskUpdates,
    threads: new Threads(database),
  };
}
