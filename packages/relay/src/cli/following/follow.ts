import { LIMITS, type MailboxItem, type EventsQuery, type EventView } from "@a2a-relay/protocol";
import type { CommandContext } from "../command-line/command-context.ts";
import { given } from "../command-line/options.ts";
import { followOptions, isBlocked, createKeepTrying, longPollMs } from "./keep-trying.ts";

interface FollowedInbox {
  readonly agent: string;
  readonly since: string | undefined;
  /** How long one long poll waits, where neither a WebSocket nor a stream gets through. */
  readonly intervalMs: number;
  readonly signal: AbortSignal;
}

/** All open messages, then new ones: over a WebSocket, as a stream, or by long polls where a proxy blocks both. */
export async function* followInbox(
  context: CommandContext,
  followed: FollowedInbox,
): AsyncGenerator<MailboxItem> {
  const { client } = context;
  const { agent, signal } = followed;
  let { since } = followed;
  await client.health({ signal });
  try {
    const options = { ...followOptions(context), signal };
    for await (const frame of client.followMailbox(agent, given({ since }), options)) {
      if (frame.type === "mail") yield* frame.messages;
      since = frame.cursor;
    }
  } catch (reason) {
    if (!isBlocked(reason)) throw reason;
  }
  yield* pollInbox(context, { ...followed, since }, LIMITS.readLimitDefault);
}

/** The same by long polls of at most `limit` messages. */
export async function* pollInbox(
  context: CommandContext,
  followed: FollowedInbox,
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

/** New events of the journal: as a stream, or by long polls where a proxy blocks it. */
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
