import { LIMITS, type MailboxItem } from "@a2a-relay/protocol";
import type { CommandContext } from "./command-context.ts";
import { followOptions, isBlocked } from "./follow-options.ts";
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
