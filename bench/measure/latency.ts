import { setTimeout as sleep } from "node:timers/promises";
import { startBareHttp, startRelay } from "../contestants/contestants.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, figureOf } from "../figure.ts";
import { type Answer, assertOk, type Connection, jsonOf, openConnections } from "../load/connection.ts";
import { IdleConnections } from "../load/idle-connections.ts";
import { getRequest, postRequest } from "../load/http-request.ts";
import { agentId, letterTo } from "../load/letters.ts";
import { percentile } from "../statistics.ts";
import type { Bench } from "./bench.ts";

const SENDS_PER_SECOND = 200;
const READERS = 20;
const SENDERS = 16;
const WAIT_MS = 30_000;
const LEASE_MS = 60_000;
/** After the last send: mail that has not come by then is lost. */
const ARRIVAL_MS_MAX = 5_000;

interface Item {
  readonly message_id: string;
  readonly message: { readonly subject: string };
  readonly lease?: { readonly id: string };
}

/** From the moment a send is written to the moment the reader who waits for it holds the answer. */
export async function measureLatency(bench: Bench): Promise<readonly Figure[]> {
  await using bare = await startBareHttp(bench);
  await using relay = await startRelay(bench);
  const echoes: number[][] = [];
  const reads: number[][] = [];
  const leases: number[][] = [];
  const durationMs = bench.roundMs * 2;
  await readersRound(relay, bench.warmUpMs, ReadingReader);
  await readersRound(relay, bench.warmUpMs, LeasingReader);
  await echoRound(bare, bench.warmUpMs);
  for (let round = 0; round < bench.rounds; round += 1) {
    bench.progress(`round ${round + 1} of ${bench.rounds}`);
    echoes.push(await echoRound(bare, durationMs));
    reads.push(await readersRound(relay, durationMs, ReadingReader));
    leases.push(await readersRound(relay, durationMs, LeasingReader));
  }
  return [
    ...percentiles("send to waiting reader", reads),
    ...percentiles("send to waiting worker (lease)", leases),
    ...percentiles("bare node:http echo, its round trip alone", echoes),
  ];
}

function percentiles(name: string, rounds: readonly (readonly number[])[]): readonly Figure[] {
  return [0.5, 0.99].map((share) =>
    figureOf(
      `${name}: p${share * 100}`,
      "ms",
      rounds.map((times) => percentile(times, share)),
    ),
  );
}

/** Calls `send` at an even pace, whether or not earlier ones have been answered. */
async function atPace(durationMs: number, send: (number: number) => void): Promise<number> {
  const start = performance.now();
  const count = Math.round((durationMs / 1_000) * SENDS_PER_SECOND);
  for (let number = 0; number < count; number += 1) {
    const waitMs = start + (number * 1_000) / SENDS_PER_SECOND - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    send(number);
  }
  return count;
}

async function echoRound(server: ServerProcess, durationMs: number): Promise<number[]> {
  using senders = await IdleConnections.open(server.port, SENDERS);
  const requests: Promise<number>[] = [];
  const bytes = postRequest("/messages", letterTo(0));
  await atPace(durationMs, () => requests.push(timed(senders, bytes)));
  return await Promise.all(requests);
}

async function timed(senders: IdleConnections, bytes: Buffer): Promise<number> {
  const start = performance.now();
  assertOk(await senders.request(bytes));
  return performance.now() - start;
}

type ReaderKind = new (connection: Connection, agent: number) => Reader;

async function readersRound(server: ServerProcess, durationMs: number, Kind: ReaderKind): Promise<number[]> {
  using senders = await IdleConnections.open(server.port, SENDERS);
  using connections = await openConnections(server.port, READERS);
  const sentAt = new Map<string, number>();
  const timesMs: number[] = [];
  const prefix = crypto.randomUUID();
  const onMail = (items: readonly Item[], at: number): void => {
    for (const { message } of items) {
      const start = sentAt.get(message.subject);
      if (start !== undefined) timesMs.push(at - start);
    }
  };
  const readers = connections.map((connection, agent) => new Kind(connection, agent));
  for (const reader of readers) await reader.skipOldMail();
  const reading = readers.map((reader) => reader.run(onMail));
  const sends: Promise<void>[] = [];
  const count = await atPace(durationMs, (number) => {
    const subject = `${prefix} ${number}`;
    const bytes = postRequest("/messages", letterTo(number % READERS, { subject }));
    sentAt.set(subject, performance.now());
    sends.push(senders.request(bytes).then(assertOk));
  });
  await Promise.all(sends);
  const lastMs = performance.now() + ARRIVAL_MS_MAX;
  while (timesMs.length < count && performance.now() < lastMs) await sleep(5);
  if (timesMs.length !== count)
    throw new Error(`of ${count} messages ${timesMs.length} reached a waiting reader`);
  for (const reader of readers) reader.stop();
  await Promise.all(reading);
  return timesMs;
}

/** Waits for mail, takes it, waits again. */
abstract class Reader {
  protected readonly connection: Connection;
  protected readonly agent: number;
  #stopped = false;

  constructor(connection: Connection, agent: number) {
    this.connection = connection;
    this.agent = agent;
  }

  /** What earlier rounds left behind is not waited for. */
  abstract skipOldMail(): Promise<void>;
  protected abstract wait(): Promise<Answer>;
  protected abstract settle(items: readonly Item[], answer: unknown): Promise<void>;

  async run(onMail: (items: readonly Item[], at: number) => void): Promise<void> {
    while (!this.#stopped) {
      const answer = await this.wait().catch(() => undefined);
      const at = performance.now();
      if (answer === undefined) return;
      const json = jsonOf(answer) as { readonly messages: readonly Item[] };
      onMail(json.messages, at);
      await this.settle(json.messages, json).catch(() => undefined);
    }
  }

  /** Hangs up; whatever was waited for will not come. */
  stop(): void {
    this.#stopped = true;
    this.connection.hangUp();
  }
}

class ReadingReader extends Reader {
  #cursor = "0";

  async skipOldMail(): Promise<void> {
    for (;;) {
      const request = getRequest(`/mailbox/${agentId(this.agent)}?since=${this.#cursor}&limit=500&peek=true`);
      const answer = jsonOf(await this.connection.request(request));
      const { messages, cursor } = answer as { readonly messages: readonly Item[]; readonly cursor: string };
      if (messages.length === 0) return;
      this.#cursor = cursor;
    }
  }

  protected wait(): Promise<Answer> {
    const query = `since=${this.#cursor}&wait_ms=${WAIT_MS}`;
    return this.connection.request(getRequest(`/mailbox/${agentId(this.agent)}?${query}`));
  }

  protected async settle(_items: readonly Item[], answer: unknown): Promise<void> {
    this.#cursor = (answer as { readonly cursor: string }).cursor;
  }
}

class LeasingReader extends Reader {
  async skipOldMail(): Promise<void> {
    for (;;) {
      const answer = jsonOf(await this.connection.request(this.#lease(100, 0)));
      const { messages } = answer as { readonly messages: readonly Item[] };
      if (messages.length === 0) return;
      await this.settle(messages);
    }
  }

  protected wait(): Promise<Answer> {
    return this.connection.request(this.#lease(1, WAIT_MS));
  }

  protected async settle(items: readonly Item[]): Promise<void> {
    if (items.length === 0) return;
    const leases = items.map((item) => ({ message_id: item.message_id, lease_id: item.lease?.id }));
    assertOk(await this.connection.request(postRequest(`/mailbox/${agentId(this.agent)}/ack`, { leases })));
  }

  #lease(max: number, waitMs: number): Buffer {
    const body = { max, lease_ms: LEASE_MS, wait_ms: waitMs };
    return postRequest(`/mailbox/${agentId(this.agent)}/lease`, body);
  }
}
