import { join } from "node:path";
import { type ChildRelay, runChildRelay, startChildRelay } from "../support/child-relay.ts";
import { type Answer, type Connection, HttpConnection } from "../support/http-connection.ts";
import { recordComplaints } from "./cast.ts";
import type { History } from "./history.ts";
import type { Random } from "./random.ts";

interface Running {
  readonly relay: ChildRelay;
  readonly connection: HttpConnection;
}

/** What background work reports while the database is out of reach. */
const OUTAGE =
  /the database does not answer; try again|the connection to the database broke during the commit/;
const SETTINGS = {
  A2A_RELAY_SWEEP_INTERVAL_MS: "50",
  A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8",
  // A connection that is silent is given up 5 seconds later.
  A2A_RELAY_DATABASE_STATEMENT_TIMEOUT_MS: "3000",
};

/** One of the relays of a group: a process that is killed and started again. */
export class Member {
  readonly #options: { readonly dataDirectory: string; readonly args: readonly string[] };
  readonly #history: History;
  #running: Running | undefined;
  #answersLeft = Number.POSITIVE_INFINITY;
  #startMs = 0;
  readonly #killed = new WeakSet<ChildRelay>();

  constructor(directory: string, databaseUrl: string, history: History) {
    this.#options = { dataDirectory: join(directory, "data"), args: ["--database", databaseUrl] };
    this.#history = history;
  }

  /** Of the process that was started last, also when it was killed since. */
  get connection(): HttpConnection | undefined {
    return this.#running?.connection;
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const start = this.#history.begin();
    const startedAtMs = performance.now();
    const relay = await startChildRelay({ ...this.#options, env: { ...SETTINGS, ...env } });
    this.#running?.connection[Symbol.dispose]();
    // Answers that the process before did not give must not kill this one.
    this.#answersLeft = Number.POSITIVE_INFINITY;
    this.#running = { relay, connection: new HttpConnection(relay.url, () => this.#heard()) };
    void this.#watch(relay);
    this.#startMs = performance.now() - startedAtMs;
    this.#history.record(start, { act: "start", tookMs: this.#startMs });
  }

  /** Kills a process of this member at this share of the time that its last start took. */
  async killWhileStarting(share: number): Promise<void> {
    const signal = AbortSignal.timeout(Math.round(this.#startMs * share));
    await runChildRelay({ ...this.#options, env: SETTINGS, signal });
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.#running === undefined) return;
    this.#killed.add(this.#running.relay);
    await this.#running.relay.kill(signal);
  }

  /** Kills it in the very turn in which its next such answer is heard. */
  killAfter(answers: number): void {
    this.#answersLeft = answers;
  }

  async ended(): Promise<void> {
    await this.#running?.relay.exited;
  }

  recordComplaints(): void {
    const lines = (this.#running?.relay.stderr() ?? "").split("\n");
    recordComplaints(lines.filter((line) => !OUTAGE.test(line)).join("\n"), this.#history);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill("SIGKILL");
    this.#running?.connection[Symbol.dispose]();
    await this.#running?.relay[Symbol.asyncDispose]();
  }

  #heard(): void {
    this.#answersLeft -= 1;
    if (this.#answersLeft > 0) return;
    this.#answersLeft = Number.POSITIVE_INFINITY;
    void this.kill("SIGKILL");
  }

  async #watch(relay: ChildRelay): Promise<void> {
    const { code, signal } = await relay.exited;
    if (this.#killed.has(relay)) return;
    const text = `it ended by itself (${code ?? signal}): ${relay.stderr()}`;
    this.#history.record(this.#history.begin(), { act: "complaint", text });
  }
}

/** How often a client moves to another relay, although its own answers. */
const MOVES = 0.05;
const UNAVAILABLE = 503;

/** What one client of several relays uses: one of them until it does not answer, then the next. */
export class SpreadConnection implements Connection {
  readonly #members: readonly Member[];
  readonly #random: Random;
  #current: number;
  #broken = false;

  constructor(members: readonly Member[], random: Random) {
    this.#members = members;
    this.#random = random;
    this.#current = random.integer(0, members.length - 1);
  }

  /** Since it was mended, a call had no answer or the answer that the relay is unavailable. */
  get broken(): boolean {
    return this.#broken;
  }

  mend(): void {
    this.#broken = false;
  }

  async call(method: "GET" | "POST", path: string, content?: unknown): Promise<Answer> {
    if (this.#random.chance(MOVES)) this.#current = this.#random.integer(0, this.#members.length - 1);
    const index = this.#current;
    const answer = await this.#members[index]?.connection?.call(method, path, content);
    if (answer !== undefined && answer.status !== UNAVAILABLE) return answer;
    this.#broken = true;
    if (index === this.#current) this.#current = (index + 1) % this.#members.length;
    return answer;
  }
}
