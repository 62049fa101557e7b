import { setTimeout as sleep } from "node:timers/promises";
import type { ServerProcess } from "../contestants/server-process.ts";
import { type Figure, figureOf } from "../figure.ts";
import { assertOk } from "../load/connection.ts";
import { postRequest } from "../load/http-request.ts";
import { IdleConnections } from "../load/idle-connections.ts";
import { messageTo } from "../load/messages.ts";
import type { InboxItem } from "../load/mailbox-item.ts";
import { percentile } from "../statistics.ts";
import type { Bench } from "./bench.ts";

export interface SendRate {
  readonly sendsPerSecond: number;
  readonly durationMs: number;
}

const SENDERS = 16;
/** After the last send: a message that has not arrived by then is lost. */
const ARRIVAL_MS_MAX = 5_000;

/** Slow enough that a send seldom meets another one. */
export function measuredRate({ roundMs }: Bench): SendRate {
  return { sendsPerSecond: 200, durationMs: roundMs * 2 };
}

/** A server that is measured has run for a while: at the slow rate its code would stay half compiled for minutes. */
export function warmUpRate({ warmUpMs }: Bench): SendRate {
  return { sendsPerSecond: 1_000, durationMs: warmUpMs };
}

/** `at` is when the messages arrived. */
export type OnMessages = (items: readonly InboxItem[], at: number) => void;

/** The recipients of one round. */
export interface Audience {
  readonly agents: readonly number[];
  begin(onMessages: OnMessages): void;
  end(): Promise<void>;
}

export function medianRounds(rounds: readonly (readonly number[])[]): readonly number[] {
  return rounds.map((times) => percentile(times, 0.5));
}

export function percentileFigures(name: string, rounds: readonly (readonly number[])[]): readonly Figure[] {
  return [0.5, 0.99].map((share) =>
    figureOf(
      `${name}: p${share * 100}`,
      "ms",
      rounds.map((times) => percentile(times, share)),
    ),
  );
}

/** The request times of a server that delivers to no reader. */
export async function echoRound(server: ServerProcess, rate: SendRate): Promise<number[]> {
  using senders = await IdleConnections.open(server.port, SENDERS);
  const requests: Promise<number>[] = [];
  const bytes = postRequest("/messages", messageTo(0));
  await atRate(rate, () => requests.push(timed(senders, bytes)));
  return await Promise.all(requests);
}

async function timed(senders: IdleConnections, bytes: Buffer): Promise<number> {
  const start = performance.now();
  assertOk(await senders.request(bytes));
  return performance.now() - start;
}

/** From each send, to everybody of the audience in turn, to its arrival. */
export async function arrivalRound(
  server: ServerProcess,
  rate: SendRate,
  audience: Audience,
): Promise<number[]> {
  using senders = await IdleConnections.open(server.port, SENDERS);
  const { agents } = audience;
  const sentAt = new Map<string, number>();
  const timesMs: number[] = [];
  const prefix = crypto.randomUUID();
  audience.begin((items, at) => {
    for (const { message } of items) {
      const start = sentAt.get(message.subject);
      if (start !== undefined) timesMs.push(at - start);
    }
  });
  const sends: Promise<void>[] = [];
  const count = await atRate(rate, (number) => {
    const subject = `${prefix} ${number}`;
    const bytes = postRequest("/messages", messageTo(agents[number % agents.length] ?? 0, { subject }));
    sentAt.set(subject, performance.now());
    sends.push(senders.request(bytes).then(assertOk));
  });
  await Promise.all(sends);
  const lastMs = performance.now() + ARRIVAL_MS_MAX;
  while (timesMs.length < count && performance.now() < lastMs) await sleep(5);
  if (timesMs.length !== count)
    throw new Error(`of ${count} messages ${timesMs.length} reached a waiting reader`);
  await audience.end();
  return timesMs;
}

/** Calls `send` at an even rate, whether or not earlier ones have been answered. */
async function atRate(
  { sendsPerSecond, durationMs }: SendRate,
  send: (number: number) => void,
): Promise<number> {
  const start = performance.now();
  const count = Math.round((durationMs / 1_000) * sendsPerSecond);
  for (let number = 0; number < count; number += 1) {
    const waitMs = start + (number * 1_000) / sendsPerSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    send(number);
  }
  return count;
}
