import { setTimeout as sleep } from "node:timers/promises";
import type { FinishEntry, Grant, NewMessage } from "./history.ts";
import type { Random } from "./random.ts";
import type { RecordingClient } from "./recording-client.ts";

/** A client that uses the relay until it is killed, and resumes once it is back. */
export interface Actor {
  /** Asks again about everything whose outcome the last crash left open. */
  reconcile(client: RecordingClient): Promise<void>;
  step(client: RecordingClient): Promise<void>;
}

const REMEMBERED_MAX = 30;
const READ_LIMIT = 500;
const OPERATOR_PAUSE_MS = 4;
/** Hundreds of pages in one commit, so that a crash can fall into the middle of it. */
const LARGE_BATCH_MESSAGES = 100;
const LARGE_BODY = " 很长的信".repeat(400);

interface Batch {
  readonly messages: readonly NewMessage[];
  readonly name: string;
  readonly atomic: boolean;
}

export class Sender implements Actor {
  readonly #name: string;
  readonly #readers: readonly [string, ...string[]];
  readonly #workers: readonly [string, ...string[]];
  readonly #random: Random;
  /** Messages with a key that were answered: material for retries. */
  readonly #answered: NewMessage[] = [];
  #open: (NewMessage | Batch)[] = [];
  #count = 0;

  constructor(
    name: string,
    to: {
      readonly readers: readonly [string, ...string[]];
      readonly workers: readonly [string, ...string[]];
    },
    random: Random,
  ) {
    this.#name = name;
    this.#readers = to.readers;
    this.#workers = to.workers;
    this.#random = random;
  }

  async reconcile(client: RecordingClient): Promise<void> {
    const left: (NewMessage | Batch)[] = [];
    for (const each of this.#open) {
      const outcome =
        "messages" in each ? await client.sendBatch(each.messages, each) : await client.send(each);
      if (outcome === "unknown") left.push(each);
    }
    this.#open = left;
  }

  async step(client: RecordingClient): Promise<void> {
    const known = this.#random.chance(0.2)
      ? this.#answered[this.#random.integer(0, REMEMBERED_MAX)]
      : undefined;
    if (known !== undefined) await this.#repeat(client, known);
    else if (this.#random.chance(0.15)) await this.#sendBatch(client);
    else await this.#sendOne(client, this.#message());
  }

  /** All or none of a great many pages. */
  async sendLarge(client: RecordingClient): Promise<void> {
    const messages = Array.from({ length: LARGE_BATCH_MESSAGES }, () => this.#message(true, LARGE_BODY));
    await this.#sendAll(client, { messages, name: `${this.#name} batch ${this.#count}`, atomic: true }, true);
  }

  async #sendOne(client: RecordingClient, message: NewMessage): Promise<void> {
    const outcome = await client.send(message);
    if (message.key === undefined && message.id === undefined) return;
    if (outcome === "unknown") this.#open.push(message);
    if (outcome === "ok") this.#remember(message);
  }

  /** The same again, the same twice at a time, or something else under the same key. */
  async #repeat(client: RecordingClient, message: NewMessage): Promise<void> {
    const kind = this.#random.integer(0, 2);
    if (kind === 0) await client.send(message);
    if (kind === 1) await Promise.all([client.send(message), client.send(message)]);
    if (kind === 2) await client.send({ ...message, body: this.#body("other content") });
  }

  async #sendBatch(client: RecordingClient): Promise<void> {
    const atomic = this.#random.chance(0.5);
    const keyed = this.#random.chance(0.5);
    const messages = Array.from({ length: this.#random.integer(2, 8) }, () =>
      this.#message(atomic ? keyed : undefined),
    );
    await this.#sendAll(client, { messages, name: `${this.#name} batch ${this.#count}`, atomic }, keyed);
  }

  async #sendAll(client: RecordingClient, batch: Batch, keyed: boolean): Promise<void> {
    if ((await client.sendBatch(batch.messages, batch)) !== "unknown") return;
    if (!batch.atomic) this.#open.push(...batch.messages.filter(({ key, id }) => (key ?? id) !== undefined));
    else if (keyed) this.#open.push(batch);
  }

  #message(keyed = this.#random.chance(0.6), more = ""): NewMessage {
    const kind = this.#random.chance(0.45) ? "request" : "note";
    const toWorker = kind === "request" || this.#random.chance(0.2);
    const body = `${this.#body(kind)}${more}`;
    const byId = keyed && this.#random.chance(0.25);
    return {
      sender: this.#name,
      recipient: this.#random.pick(toWorker ? this.#workers : this.#readers),
      kind,
      body,
      ...(keyed && !byId ? { key: `key ${this.#count} of ${this.#name}` } : {}),
      ...(byId ? { id: `${this.#name.replace(/@.*/, "")}-${this.#count}` } : {}),
      idempotent: keyed && !byId && this.#random.chance(0.4),
    };
  }

  #body(what: string): string {
    this.#count += 1;
    return `知微你好, ${what} ${this.#count} of ${this.#name}`;
  }

  #remember(message: NewMessage): void {
    if (this.#answered.length <= REMEMBERED_MAX) this.#answered.push(message);
    else this.#answered[this.#random.integer(0, REMEMBERED_MAX)] = message;
  }
}

/** Reads one mailbox and acknowledges most of what it finds. */
export class Reader implements Actor {
  readonly #mailbox: string;
  readonly #random: Random;
  #cursor: { readonly text: string; readonly from: number } | undefined;

  constructor(mailbox: string, random: Random) {
    this.#mailbox = mailbox;
    this.#random = random;
  }

  async reconcile(): Promise<void> {
    // Whatever was not acknowledged comes again by itself.
  }

  async step(client: RecordingClient): Promise<void> {
    const how = { limit: READ_LIMIT, peek: this.#random.chance(0.3), waitMs: this.#random.pick([0, 20, 50]) };
    const cursor = this.#random.chance(0.4) ? this.#cursor : undefined;
    const read = await client.read(this.#mailbox, how, cursor);
    if (read === undefined || read.deliveries.length === 0) return;
    this.#cursor = read.cursor;
    const done = this.#random.some(read.deliveries, 0.8).map((item) => item.messageId);
    if (done.length === 0) return;
    await client.ackIds(this.#mailbox, done);
    if (this.#random.chance(0.1)) await client.ackIds(this.#mailbox, done.slice(0, 5));
  }
}

interface Finish {
  readonly by: FinishEntry["by"];
  readonly grant: Grant;
  readonly text: string;
}

/** Leases deliveries of one mailbox, works on them, and drops some. */
export class Worker implements Actor {
  readonly #mailbox: string;
  readonly #name: string;
  readonly #random: Random;
  readonly #forgotten: Grant[] = [];
  #open: Finish[] = [];
  #count = 0;

  constructor(mailbox: string, name: string, random: Random) {
    this.#mailbox = mailbox;
    this.#name = name;
    this.#random = random;
  }

  async reconcile(client: RecordingClient): Promise<void> {
    const left: Finish[] = [];
    for (const finish of this.#open) {
      const outcome = await client.finish(finish.by, finish.grant, this.#mailbox, finish.text);
      if (outcome === "unknown") left.push(finish);
    }
    this.#open = left;
  }

  async step(client: RecordingClient): Promise<void> {
    const leaseMs = this.#random.pick([undefined, undefined, 150, 5_000]);
    const grants = await client.lease(this.#mailbox, {
      max: this.#random.integer(1, 5),
      wait_ms: this.#random.pick([0, 20]),
      worker: this.#name,
      ...(leaseMs === undefined ? {} : { lease_ms: leaseMs }),
    });
    for (const grant of grants) await this.#work(client, grant);
    const old = this.#random.chance(0.2) ? this.#forgotten.shift() : undefined;
    if (old !== undefined) await this.#work(client, old);
  }

  async #work(client: RecordingClient, grant: Grant): Promise<void> {
    const draw = this.#random.next();
    if (draw < 0.1) this.#forget(grant);
    else if (draw < 0.2) await client.actOnLeases("release", this.#mailbox, [grant]);
    else if (draw < 0.25) await client.fail(this.#mailbox, grant, this.#text("could not be done", grant));
    else if (grant.taskId === undefined || draw < 0.35)
      await client.actOnLeases("ack", this.#mailbox, [grant]);
    else {
      if (draw < 0.45) await client.actOnLeases("renew", this.#mailbox, [grant]);
      await this.#finish(client, grant);
    }
  }

  async #finish(client: RecordingClient, grant: Grant): Promise<void> {
    const by = this.#random.chance(0.3) ? "reply" : "complete";
    const text = this.#text("done", grant);
    const outcome = await client.finish(by, grant, this.#mailbox, text);
    if (outcome === "unknown") this.#open.push({ by, grant, text });
    if (this.#random.chance(0.2)) await client.finish(by, grant, this.#mailbox, text);
    // A second, different completion, which must be refused.
    if (this.#random.chance(0.2)) {
      await client.finish("complete", grant, this.#mailbox, this.#text("done otherwise", grant));
    }
  }

  #forget(grant: Grant): void {
    this.#forgotten.push(grant);
    if (this.#forgotten.length > REMEMBERED_MAX) this.#forgotten.shift();
  }

  #text(what: string, grant: Grant): string {
    this.#count += 1;
    return `${what}: ${grant.body.slice(0, 60)} (${this.#name}, ${this.#count})`;
  }
}

/** Requeues deliveries of a dead worker, and sometimes of a live one. */
export class Operator implements Actor {
  readonly #random: Random;
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  async reconcile(): Promise<void> {
    // What is still leased is in the queue.
  }

  async step(client: RecordingClient): Promise<void> {
    const entries = await client.leasedQueue();
    for (const { message_id, lease } of this.#random.some(entries, 0.15)) {
      const act = this.#random.chance(0.05) ? "force_error" : "requeue";
      const guard = this.#random.chance(0.5) ? lease?.id : undefined;
      this.#count += 1;
      await client.repair(act, message_id, guard, `given up by the operator (${this.#count})`);
    }
    await sleep(OPERATOR_PAUSE_MS);
  }
}
