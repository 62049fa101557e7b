import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ChildRelay, runChildRelay, startChildRelay } from "../support/child-relay.ts";
import type { Actor } from "./actors.ts";
import { answeredLately, atOnce, Cast, recordComplaints, unfinished } from "./cast.ts";
import { type CheckReport, checkHistory } from "./check-history.ts";
import { type Entry, entriesOf, History } from "./history.ts";
import { HttpConnection } from "../support/http-connection.ts";
import { Random } from "./random.ts";
import { RecordingClient } from "./recording-client.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

export interface CrashRunOptions {
  readonly kills: number;
  readonly seed: number;
  /** Told about progress, a line at a time. */
  readonly say: (line: string) => void;
}

export interface CrashRunReport extends CheckReport {
  readonly entries: readonly Entry[];
  readonly tookMs: number;
  /** Where the relay's files are; kept only when something was wrong. */
  readonly directory: string;
}

const LOAD_MS = { minimum: 20, maximum: 500 } as const;
const ANSWERS_BEFORE_KILL = { minimum: 5, maximum: 400 } as const;
/** Of the time the last start took: from before the relay opens its files until after it listens. */
const STARTING = { earliest: 0.5, latest: 1.1 } as const;
const STOPPING_MS_MAX = 60;
/** From its sending to its answer. */
const LARGE_BATCH_MS_MAX = 60;
const NEVER_MS = 3_600_000;
const VERIFY_EVERY = 5;
const FETCHES_AFTER_RESTART_MAX = 60;

/** A kind that is listed twice happens twice as often. */
const KILLS = [
  "at a random moment",
  "at a random moment",
  "at a random moment",
  "at a random moment",
  "right after an answer",
  "right after an answer",
  "right after an answer",
  "right after an answer",
  "while a large batch is written",
  "while a large batch is written",
  "while it starts",
  "while it stops",
] as const;
type Kill = (typeof KILLS)[number];

/** Kills a relay again and again while clients use it, and checks what they saw. */
export async function crashRun(options: CrashRunOptions): Promise<CrashRunReport> {
  const startedAtMs = performance.now();
  const directory = await mkdtemp(join(tmpdir(), "a2a-relay-crash-"));
  const history = new History();
  await using receiver = await WebhookReceiver.open(history);
  const run = new Run({ directory, history, receiver }, options);
  const report = await run.all().then(() => checkHistory(run.entries), unfinished);
  if (report.violations.length === 0) await rm(directory, { recursive: true, force: true });
  return { ...report, entries: run.entries, directory, tookMs: performance.now() - startedAtMs };
}

interface Scene {
  readonly directory: string;
  readonly history: History;
  readonly receiver: WebhookReceiver;
}

class Run {
  readonly #directory: string;
  readonly #options: CrashRunOptions;
  readonly #random: Random;
  readonly #history: History;
  readonly #cast: Cast;
  #planned: readonly Kill[] = [];
  #kills = 0;
  #checked = 0;

  constructor({ directory, history, receiver }: Scene, options: CrashRunOptions) {
    this.#directory = directory;
    this.#history = history;
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#cast = new Cast(this.#random, receiver.url);
  }

  get entries(): readonly Entry[] {
    return this.#history.entries;
  }

  async all(): Promise<void> {
    await this.#registerAll();
    await this.#killAll();
    await this.#fetchAll();
  }

  async #registerAll(): Promise<void> {
    await using relay = await this.#start();
    using connection = new HttpConnection(relay.url);
    const client = new RecordingClient(connection, this.#history);
    await this.#cast.register(client);
    await relay.kill("SIGTERM");
  }

  async #killAll(): Promise<void> {
    while (this.#kills < this.#options.kills) {
      const how = this.#nextKill();
      if (how === "while it starts") await this.#killWhileStarting();
      else await this.#killUnderLoad(how);
      this.#kills += 1;
      if (this.#kills % 10 === 0) {
        this.#options.say(`${this.#kills} kills, ${this.#history.entries.length} acts`);
      }
    }
  }

  /** Goes through all of `KILLS` in a random order, then again: a short run has every kind. */
  #nextKill(): Kill {
    if (this.#planned.length === 0) this.#planned = this.#random.shuffled(KILLS);
    const [next = KILLS[0], ...rest] = this.#planned;
    this.#planned = rest;
    return next;
  }

  async #fetchAll(): Promise<void> {
    // Nothing may change between reading the journal and reading the messages.
    await using relay = await this.#start({ A2A_RELAY_SWEEP_INTERVAL_MS: String(NEVER_MS) });
    using connection = new HttpConnection(relay.url);
    await this.#cast.fetchAll(new RecordingClient(connection, this.#history), this.entries);
    await relay.kill("SIGTERM");
    recordComplaints(relay.stderr(), this.#history);
  }

  async #killWhileStarting(): Promise<void> {
    const start = this.#history.begin();
    const tookMs = entriesOf(this.entries, "start").at(-1)?.tookMs ?? 0;
    const share = STARTING.earliest + this.#random.next() * (STARTING.latest - STARTING.earliest);
    const signal = AbortSignal.timeout(Math.round(tookMs * share));
    const ended = await runChildRelay({ ...this.#settings(), signal });
    if (ended.signal !== "SIGKILL") {
      const text = `it ended by itself while starting (${ended.code}): ${ended.stderr}`;
      this.#history.record(start, { act: "complaint", text });
    }
    this.#history.record(start, { act: "kill", how: "while it starts" satisfies Kill });
  }

  async #killUnderLoad(how: Exclude<Kill, "while it starts">): Promise<void> {
    await using relay = await this.#start();
    let answersLeft = Number.POSITIVE_INFINITY;
    const due = Promise.withResolvers<void>();
    using connection = new HttpConnection(relay.url, () => {
      answersLeft -= 1;
      if (answersLeft > 0) return;
      // At once, in the very turn in which the answer was heard.
      process.kill(relay.pid, "SIGKILL");
      answersLeft = Number.POSITIVE_INFINITY;
      due.resolve();
    });
    const client = new RecordingClient(connection, this.#history);
    await this.#fetchRecent(client);
    if (this.#kills % VERIFY_EVERY === 0) await client.verify();
    const load = Promise.all(this.#cast.actors.map((actor) => useUntilGone(actor, client)));
    if (how === "right after an answer") {
      answersLeft = this.#random.integer(ANSWERS_BEFORE_KILL.minimum, ANSWERS_BEFORE_KILL.maximum);
      await due.promise;
    } else {
      await sleep(this.#random.integer(LOAD_MS.minimum, LOAD_MS.maximum));
    }
    const large = how === "while a large batch is written" ? this.#cast.sender.sendLarge(client) : undefined;
    if (large !== undefined) await sleep(this.#random.integer(0, LARGE_BATCH_MS_MAX));
    await this.#kill(relay, how);
    await Promise.all([load, large]);
    recordComplaints(relay.stderr(), this.#history);
  }

  async #kill(relay: ChildRelay, how: Kill): Promise<void> {
    const start = this.#history.begin();
    if (how === "while it stops") {
      const stopping = relay.kill("SIGTERM");
      await sleep(this.#random.integer(0, STOPPING_MS_MAX));
      await Promise.all([stopping, relay.kill("SIGKILL")]);
    } else {
      await relay.kill("SIGKILL");
    }
    this.#history.record(start, { act: "kill", how });
  }

  async #fetchRecent(client: RecordingClient): Promise<void> {
    const recent = this.entries.slice(this.#checked);
    this.#checked = this.entries.length;
    const { messageIds, taskIds } = answeredLately(recent, FETCHES_AFTER_RESTART_MAX);
    await atOnce(messageIds, (id) => client.fetch(id));
    await atOnce(taskIds, (id) => client.fetchTask(id));
  }

  async #start(env: Readonly<Record<string, string>> = {}): Promise<ChildRelay> {
    const start = this.#history.begin();
    const startedAtMs = performance.now();
    const relay = await startChildRelay(this.#settings(env));
    this.#history.record(start, { act: "start", tookMs: performance.now() - startedAtMs });
    return relay;
  }

  #settings(env: Readonly<Record<string, string>> = {}) {
    return {
      dataDirectory: join(this.#directory, "data"),
      env: {
        // So few that a checkpoint follows almost every commit.
        A2A_RELAY_CHECKPOINT_PAGES: String(this.#random.integer(20, 50)),
        A2A_RELAY_SWEEP_INTERVAL_MS: "50",
        A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8",
        ...env,
      },
    };
  }
}

async function useUntilGone(actor: Actor, client: RecordingClient): Promise<void> {
  await actor.reconcile(client);
  while (!client.cutOff) await actor.step(client);
}
