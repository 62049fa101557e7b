import { type Actor, Operator, Reader, Sender, Worker } from "./actors.ts";
import type { CheckReport } from "./check-history.ts";
import { type Entry, entriesOf, type History } from "./history.ts";
import type { Random } from "./random.ts";
import type { RecordingClient } from "./recording-client.ts";

const SENDERS = ["sender-1@crash", "sender-2@crash", "sender-3@crash"] as const;
const READERS = ["reader-1@crash", "reader-2@crash"] as const;
const WORKERS = ["worker-1@crash", "worker-2@crash"] as const;
/** Several: the pushes of one wait up to a minute after the relay that claimed them was killed. */
const HOOKS = ["hook-1@crash", "hook-2@crash", "hook-3@crash", "hook-4@crash"] as const;
const FETCHES_AT_ONCE = 16;

/** All clients of a run. */
export class Cast {
  /** The one that sends large batches too. */
  readonly sender: Sender;
  readonly actors: readonly Actor[];
  readonly #callbackUrl: string;

  constructor(random: Random, callbackUrl: string) {
    this.#callbackUrl = callbackUrl;
    const fork = (): Random => random.fork();
    const to = { readers: [...READERS, ...READERS, ...HOOKS] as const, workers: WORKERS };
    this.sender = new Sender(SENDERS[0], to, fork());
    this.actors = [
      this.sender,
      ...SENDERS.slice(1).map((name) => new Sender(name, to, fork())),
      ...[...READERS, ...SENDERS].map((mailbox) => new Reader(mailbox, fork())),
      ...WORKERS.flatMap((mailbox) =>
        [1, 2].map((n) => new Worker(mailbox, `hand-${n} of ${mailbox}`, fork())),
      ),
      new Operator(fork()),
    ];
  }

  async register(client: RecordingClient): Promise<void> {
    for (const agent of [...SENDERS, ...READERS, ...WORKERS]) await client.register(agent);
    for (const agent of HOOKS) await client.register(agent, this.#callbackUrl);
  }

  /** The end: every unknown outcome is asked for again, and every message and task is fetched. */
  async fetchAll(client: RecordingClient, entries: readonly Entry[]): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.reconcile(client)));
    await client.verify();
    const events = await client.journal();
    const messageIds = new Set(events.flatMap((event) => event.messageId ?? []));
    for (const send of entriesOf(entries, "send")) {
      if (send.messageId !== undefined) messageIds.add(send.messageId);
    }
    const taskIds = new Set(events.flatMap((event) => event.taskId ?? []));
    for (const finish of entriesOf(entries, "finish")) taskIds.add(finish.taskId);
    await atOnce([...messageIds], (id) => client.fetch(id));
    await atOnce([...taskIds], (id) => client.fetchTask(id));
  }
}

/** What was answered lately is what a crash may have lost. */
export function answeredLately(
  entries: readonly Entry[],
  max: number,
): { readonly messageIds: readonly string[]; readonly taskIds: readonly string[] } {
  const sent = entriesOf(entries, "send").flatMap(({ messageId }) => messageId ?? []);
  const finished = entriesOf(entries, "finish").flatMap(({ outcome, taskId }) =>
    outcome === "ok" ? taskId : [],
  );
  return { messageIds: sent.slice(-max), taskIds: finished.slice(-max) };
}

/** The relay's log has nothing to report of a run like this. */
export function recordComplaints(log: string, history: History): void {
  const start = history.begin();
  for (const line of log.split("\n")) {
    if (/"level":(50|60)|unexpected|at .*\.ts:\d+/.test(line)) {
      history.record(start, { act: "complaint", text: line });
    }
  }
}

/** Without the last fetch there is nothing to compare, so the reason for its absence is reported. */
export function unfinished(reason: unknown): CheckReport {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  return { violations: [{ invariant: "the relay comes up by itself", text }], checked: new Map() };
}

export async function atOnce<Item>(
  items: readonly Item[],
  act: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: FETCHES_AT_ONCE }, async () => {
      for (const item of left) await act(item);
    }),
  );
}
