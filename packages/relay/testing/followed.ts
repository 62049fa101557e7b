import type { MailboxItem } from "@a2a-relay/protocol";
import type { MailboxPage } from "../src/core/mailboxes/mailbox-stream.ts";
import type { CoreOnMemory } from "./core-on-memory.ts";
import { ZHIWEI } from "./core-on-memory.ts";

/** Something that is followed, a step at a time. Leaving it ends it. */
export class FollowedPages<Page> implements AsyncDisposable {
  readonly #pages: AsyncIterator<Page>;
  readonly #left: AbortController;

  constructor(pages: AsyncIterable<Page>, left: AbortController) {
    this.#pages = pages[Symbol.asyncIterator]();
    this.#left = left;
  }

  /** Undefined at the end. */
  async next(): Promise<Page | undefined> {
    const step = await this.#pages.next();
    return step.done === true ? undefined : step.value;
  }

  /** The reader has disconnected. */
  hangUp(): void {
    this.#left.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hangUp();
    await this.#pages.return?.();
  }
}

/** Follows a mailbox, which is zhiwei's unless another is named. */
export async function followInbox(
  core: CoreOnMemory,
  query: object = {},
  principal: Parameters<CoreOnMemory["mailboxes"]["follow"]>[0] = core.zhiwei,
  agent: string = ZHIWEI,
): Promise<FollowedPages<MailboxPage>> {
  const left = new AbortController();
  return new FollowedPages(await core.mailboxes.follow(principal, agent, query, left), left);
}

export function itemsOf(page: MailboxPage | undefined): readonly MailboxItem[] {
  return (page?.items ?? []).map(({ item }) => item as MailboxItem);
}

export function bodiesOf(page: MailboxPage | undefined): readonly string[] {
  return itemsOf(page).map(({ message }) => message.body);
}
