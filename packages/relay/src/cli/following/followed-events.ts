import type { EventsQuery, EventView } from "@a2a-relay/protocol";
import type { CommandContext } from "../command-line/command-context.ts";
import { followOptions, isBlocked } from "./follow-options.ts";
import { createKeepTrying, longPollMs } from "./keep-trying.ts";

/** New events of the journal: as a stream, or by long polls where none comes through. */
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
