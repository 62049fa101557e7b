import { type FollowOptions, TransportBlocked } from "@a2a-relay/client";
import { type EventsQuery, type EventView, LIMITS, type MailboxItem, RelayError } from "@a2a-relay/protocol";
import type { CommandContext } from "./command-context.ts";
import { given } from "./given.ts";
import { createKeepTrying, longPollMs } from "./keep-trying.ts";

export interface FollowedMail {
  readonly agent: string;
  readonly since: string | undefined;
  /** How long one request waits where no stream comes through. */
  readonly intervalMs: number;
  readonly signal: AbortSignal;
}

/** All open mail and then what comes: as a stream, or by long polls where none comes through. */
export async function* followMail(
  context: CommandContext,
  followed: FollowedMail,
): AsyncGenerator<MailboxItem> {
  const { client } = context;
  const { agent, signal } = followed;
  let { since } = followed;
  await client.health({ signal });
  try {
    const options = { ...followOptions(context), signal };
    for await (const { item, cursor } of client.streamMailbox(agent, given({ since }), options)) {
      since = cursor;
      yield item;
    }
  } catch (reason) {
    if (!isBlocked(reason)) throw reason;
  }
  yield* pollMail(context, { ...followed, since }, LIMITS.readLimitDefault);
}

/** The same by long polls, at most so many letters at a time. */
export async function* pollMail(
  context: CommandContext,
  followed: FollowedMail,
  limit: number,
): AsyncGenerator<MailboxItem> {
  const { client } = context;
  const { signal } = followed;
  const keepTrying = createKeepTrying(context);
  let { since } = followed;
  for (;;) {
    const query = given({ since, limit, wait_ms: longPollMs(followed.intervalMs) });
    const page = await keepTrying(() => client.readMailbox(followed.agent, query, { signal }));
    yield* page.messages;
    since = page.cursor;
  }
}

/** New events of the journal, in the same way. */
export async function* followEvents(
  context: CommandContext,
  query: EventsQuery & { readonly since: string },
  intervalMs: number,
): AsyncGenerator<EventView> {
  const { client, signal } = context;
  const { limit: _, ...streamed } = query;
  let { since } = query;
  await client.health({ signal });
  try {
    for await (const { event, cursor } of client.streamEvents(streamed, followOptions(context))) {
      since = cursor;
      yield event;
    }
  } catch (reason) {
    if (!isBlocked(reason)) throw reason;
  }
  const keepTrying = createKeepTrying(context);
  for (;;) {
    const polled = { ...query, since, wait_ms: longPollMs(intervalMs) };
    const page = await keepTrying(() => client.events(polled, { signal }));
    yield* page.events;
    since = page.cursor;
  }
}

/** With a note for each absence of the relay. */
export function followOptions({ output, signal }: CommandContext): FollowOptions {
  let notedAtMs = Number.NEGATIVE_INFINITY;
  const onAway = (): void => {
    const nowMs = performance.now();
    if (nowMs - notedAtMs < NOTE_MS) return;
    notedAtMs = nowMs;
    // Whoever reads our notes may have gone; what it wants to know it reads elsewhere.
    output.note("relay not reachable, trying again").catch(() => undefined);
  };
  return { signal, onAway };
}

/** Nobody wants to read of each of many tries. */
const NOTE_MS = 30_000;

/** An older relay has no streams, and some proxies hold them back. */
export function isBlocked(reason: unknown): boolean {
  return reason instanceof TransportBlocked || (reason instanceof RelayError && reason.code === "not_found");
}
