import type { StreamEventName } from "@a2a-relay/protocol";
import type { MailboxPage } from "../../core/mailboxes/mailbox-stream.ts";
import type { StreamKind } from "./stream-meter.ts";

/** `data` is JSON, and so without line breaks. */
export interface ServerSentEvent {
  readonly id: string;
  /** Absent: a message, as browsers call what has no name. A2A over REST says with "error" that its stream failed. */
  readonly event?: StreamEventName | "error";
  readonly data: string;
}

/** An answer that goes on. */
export interface EventStream {
  readonly kind: StreamKind;
  /** The next events, none of them as a sign of life; undefined when there will be no more. */
  next(): Promise<readonly ServerSentEvent[] | undefined>;
}

/** Asks for a page only when the one before it was taken. */
export function eventStream<Page>(
  kind: StreamKind,
  pages: AsyncIterable<Page>,
  eventsOf: (page: Page) => readonly ServerSentEvent[],
): EventStream {
  const iterator = pages[Symbol.asyncIterator]();
  return {
    kind,
    next: async () => {
      const step = await iterator.next();
      return step.done === true ? undefined : eventsOf(step.value);
    },
  };
}

/** A stream whose first events were read already. They are given away once, and kept no longer. */
export function beginningWith(first: readonly ServerSentEvent[], stream: EventStream): EventStream {
  let unread: readonly ServerSentEvent[] | undefined = first;
  return {
    kind: stream.kind,
    next: () => {
      if (unread === undefined) return stream.next();
      const events = Promise.resolve(unread);
      unread = undefined;
      return events;
    },
  };
}

export function mailboxStream(pages: AsyncIterable<MailboxPage>, event: "message" | "notice"): EventStream {
  return eventStream("mailbox", pages, ({ items }) =>
    items.map(({ cursor, item }) => ({ id: cursor, event, data: JSON.stringify(item) })),
  );
}

/** Events of a task or of the journal. */
export function factStream(
  kind: "task" | "events",
  pages: AsyncIterable<{ readonly events: readonly { readonly seq: number }[] }>,
): EventStream {
  return eventStream(kind, pages, ({ events }) =>
    events.map((event) => ({ id: String(event.seq), event: "event", data: JSON.stringify(event) })),
  );
}
