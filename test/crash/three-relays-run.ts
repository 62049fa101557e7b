import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startPostgres } from "../../packages/relay/testing/postgres-server.ts";
import { BreakableLine } from "../support/breakable-line.ts";
import { HttpConnection } from "../support/http-connection.ts";
import type { Actor } from "./actors.ts";
import { answeredLately, Cast, unfinished } from "./cast.ts";
import { checkHistory } from "./check-history.ts";
import type { CrashRunOptions, CrashRunReport } from "./crash-run.ts";
import { type Entry, History } from "./history.ts";
import { Random } from "./random.ts";
import { RecordingClient } from "./recording-client.ts";
import { Member, SpreadConnection } from "./relay-group.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

const RELAYS = 3;
const LOAD_MS = { minimum: 100, maximum: 700 } as const;
const ANSWERS_BEFORE_KILL_MAX = 200;
const ANSWERS_MS_MAX = 2_000;
const STARTING = { earliest: 0.3, latest: 1.1 } as const;
const STOPPING_MS_MAX = 60;
const LARGE_BATCH_MS_MAX = 60;
const HELD_MS = { minimum: 50, maximum: 1_500 } as const;
const BACKENDS_MAX = 12;
const LOST_COMMITS_MAX = 5;
/** After a connection to the database broke, until every call that it concerned is answered. */
const SETTLING_MS = 400;
const BROKEN_PAUSE_MS = 10;
const NEVER_MS = 3_600_000;
const FETCHES_MAX = 20;
const VERIFY_EVERY = 20;

const FAULTS = [
  "at a random moment",
  "right after an answer",
  "while a large batch is written",
  "while it starts",
  "while it stops",
  "backends terminated",
  "line cut",
  "line delayed",
  "line half open",
  "answers to commits lost",
] as const;
/** Takes longer: until the relay has given its connections up. */
const SILENCE = "line silent";
type Fault = (typeof FAULTS)[number] | typeof SILENCE;

/** Relays on one PostgreSQL database are killed and cut off in turn while clients use all of them. */
export async function threeRelaysRun(options: CrashRunOptions): Promise<CrashRunReport> {
  const startedAtMs = performance.now();
  const directory = await mkdtemp(join(tmpdir(), "a2a-relay-crash-"));
  await chmod(directory, 0o755);
  await using server = await startPostgres();
  const name = server.newSchema();
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(server.url);
  url.pathname = name;
  const database = new pg.Client({ connectionString: url.href });
  await database.connect();
  const history = new History();
  await using receiver = await WebhookReceiver.open(history);
  await using line = await BreakableLine.open(() => server.url.replace(/^postgres(ql)?:/, "http:"));
  const run = new Run({ directory, database, url, line, history, receiver }, options);
  const report = await run.all().then(() => checkHistory(run.entries), unfinished);
  await run[Symbol.asyncDispose]();
  await database.end();
  await admin.query(`drop database ${name} with (force)`);
  await admin.end();
  if (report.violations.length === 0) await rm(directory, { recursive: true, force: true });
  return { ...report, entries: run.entries, directory, tookMs: performance.now() - startedAtMs };
}

interface Scene {
  readonly directory: string;
  readonly database: pg.Client;
  readonly url: URL;
  /** Between the last relay and the database. */
  readonly line: BreakableLine;
  readonly history: History;
  readonly receiver: WebhookReceiver;
}

class Run {
  readonly #scene: Scene;
  readonly #options: CrashRunOptions;
  readonly #random: Random;
  readonly #history: History;
  readonly #cast: Cast;
  readonly #members: readonly Member[];
  readonly #faults: readonly Fault[];
  #isOver = false;
  #planned: readonly Fault[] = [];

  constructor(scene: Scene, options: CrashRunOptions) {
    this.#scene = scene;
    this.#options = options;
    this.#faults = options.kills > FAULTS.length ? [...FAULTS, SILENCE] : FAULTS;
    this.#random = new Random(options.seed);
    this.#history = scene.history;
    this.#cast = new Cast(this.#random, scene.receiver.url);
    const throughLine = new URL(scene.url);
    throughLine.host = new URL(scene.line.url).host;
    this.#members = Array.from({ length: RELAYS }, (_, index) => {
      const url = index === RELAYS - 1 ? throughLine : scene.url;
      return new Member(join(scene.directory, `relay-${index}`), url.href, this.#history);
    });
  }

  get entries(): readonly Entry[] {
    return this.#history.entries;
  }

  async all(): Promise<void> {
    // On an empty database all of them create the tables.
    await Promise.all(this.#members.map((member) => member.start()));
    await this.#cast.register(this.#spread().client);
    const load = Promise.all(
      [...this.#cast.actors, new Witness(this.#history)].map((actor) => this.#use(actor)),
    );
    const faults = this.#breakAll();
    await Promise.race([faults, load]).finally(() => {
      this.#isOver = true;
    });
    await Promise.all([faults, load]);
    await Promise.all(this.#members.map((member) => member.kill("SIGTERM")));
    for (const member of this.#members) member.recordComplaints();
    await this.#fetchAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member[Symbol.asyncDispose]()));
  }

  #spread(): { readonly connection: SpreadConnection; readonly client: RecordingClient } {
    const connection = new SpreadConnection(this.#members, this.#random.fork());
    return { connection, client: new RecordingClient(connection, this.#history) };
  }

  async #use(actor: Actor): Promise<void> {
    const { connection, client } = this.#spread();
    while (!this.#isOver) {
      if (connection.broken) {
        connection.mend();
        await sleep(BROKEN_PAUSE_MS);
        await actor.reconcile(client);
      }
      await actor.step(client);
    }
  }

  async #fetchAll(): Promise<void> {
    const [member] = this.#members;
    // Nothing may change between reading the journal and reading the messages.
    await member?.start({ A2A_RELAY_SWEEP_INTERVAL_MS: String(NEVER_MS) });
    const { connection } = member ?? {};
    if (!(connection instanceof HttpConnection)) throw new Error("no relay was started");
    await this.#cast.fetchAll(new RecordingClient(connection, this.#history), this.entries);
    await member?.kill("SIGTERM");
    member?.recordComplaints();
  }

  async #breakAll(): Promise<void> {
    for (let count = 1; count <= this.#options.kills && !this.#isOver; count += 1) {
      await sleep(this.#random.integer(LOAD_MS.minimum, LOAD_MS.maximum));
      if (this.#planned.length === 0) this.#planned = this.#random.shuffled(this.#faults);
      const [fault = FAULTS[0], ...rest] = this.#planned;
      this.#planned = rest;
      await this.#break(fault);
      if (count % 10 === 0) this.#options.say(`${count} faults, ${this.entries.length} acts`);
    }
  }

  async #break(fault: Fault): Promise<void> {
    const start = this.#history.begin();
    switch (fault) {
      case "backends terminated":
      case "line cut":
      case "line delayed":
      case "line half open":
      case "answers to commits lost":
      case SILENCE:
        await this.#cutOff(fault);
        await sleep(SETTLING_MS);
        this.#history.record(start, { act: "kill", how: "of its database connections" });
        return;
      default:
        await this.#kill(fault, start);
    }
  }

  async #cutOff(fault: Fault): Promise<void> {
    const { database, line } = this.#scene;
    if (fault === "backends terminated") {
      await database.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() order by random() limit $1`,
        [this.#random.integer(1, BACKENDS_MAX)],
      );
      return;
    }
    if (fault === "line cut") {
      line.cut();
      return;
    }
    if (fault === SILENCE) {
      await line.silence();
      return;
    }
    if (fault === "answers to commits lost") {
      for (let left = this.#random.integer(1, LOST_COMMITS_MAX); left > 0 && !this.#isOver; left -= 1) {
        line.breakAt("commit\0", "answered");
        while (line.isBreakPlanned && !this.#isOver) await sleep(BROKEN_PAUSE_MS);
      }
      return;
    }
    const release = line.hold();
    await sleep(this.#random.integer(HELD_MS.minimum, HELD_MS.maximum));
    if (fault === "line half open") line.cut();
    release();
  }

  async #kill(fault: Fault, start: number): Promise<void> {
    const [first, ...others] = this.#random.shuffled(this.#members);
    const member = first ?? others[0];
    if (member === undefined) return;
    let large: Promise<void> | undefined;
    if (fault === "right after an answer") {
      member.killAfter(this.#random.integer(1, ANSWERS_BEFORE_KILL_MAX));
      await Promise.race([member.ended(), sleep(ANSWERS_MS_MAX)]);
      await member.kill("SIGKILL");
    } else if (fault === "while it stops") {
      const stopping = member.kill("SIGTERM");
      await sleep(this.#random.integer(0, STOPPING_MS_MAX));
      await Promise.all([stopping, member.kill("SIGKILL")]);
    } else {
      if (fault === "while a large batch is written" && member.connection !== undefined) {
        large = this.#cast.sender.sendLarge(new RecordingClient(member.connection, this.#history));
        await sleep(this.#random.integer(0, LARGE_BATCH_MS_MAX));
      }
      await member.kill("SIGKILL");
    }
    await large;
    this.#history.record(start, { act: "kill", how: fault });
    member.recordComplaints();
    if (fault === "while it starts") {
      await member.killWhileStarting(
        STARTING.earliest + this.#random.next() * (STARTING.latest - STARTING.earliest),
      );
    }
    await member.start();
  }
}

/** Fetches at one relay what was answered lately by any, one after the other, and verifies the journal. */
class Witness implements Actor {
  readonly #history: History;
  #checked = 0;
  #steps = 0;

  constructor(history: History) {
    this.#history = history;
  }

  async reconcile(): Promise<void> {
    // It changes nothing.
  }

  async step(client: RecordingClient): Promise<void> {
    const recent = this.#history.entries.slice(this.#checked);
    this.#checked = this.#history.entries.length;
    const { messageIds, taskIds } = answeredLately(recent, FETCHES_MAX);
    for (const id of messageIds) await client.fetch(id);
    for (const id of taskIds) await client.fetchTask(id);
    this.#steps += 1;
    if (this.#steps % VERIFY_EVERY === 0) await client.verify();
  }
}
