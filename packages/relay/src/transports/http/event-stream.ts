import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { HEARTBEAT_HEADER, RelayError, type StreamEventName } from "@a2a-relay/protocol";

export const STREAM_KINDS = ["mailbox", "task", "events", "a2a", "socket"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

/** `data` is JSON, and so without line breaks. */
export interface ServerSentEvent {
  readonly id: string;
  /** Absent: browsers call it "message". A2A over REST reports a failed stream as "error". */
  readonly event?: StreamEventName | "error";
  readonly data: string;
}

export interface EventStream {
  readonly kind: StreamKind;
  /** The next events; an empty list is a heartbeat, undefined the end. */
  next(): Promise<readonly ServerSentEvent[] | undefined>;
}

/** Counts open streams and slow readers. */
export interface StreamMeter {
  opened(kind: StreamKind): void;
  closed(kind: StreamKind): void;
  cutOff(kind: StreamKind): void;
}

/** What a stream or socket needs of the server. */
export interface StreamHost {
  readonly meter: StreamMeter;
  /** The interval between heartbeats, which the relay announces to readers. */
  readonly heartbeatMs: number;
  /** The relay disconnects a reader that takes nothing for so long. */
  readonly stallMs: number;
  /** Logs a failure that the reader must not see. */
  onFailure(reason: unknown): void;
}

/** Reads a page only when the events of the page before were taken. */
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

/** Puts events back that were read already. It drops its reference to them: an idle stream must not hold a page. */
export function beginningWith(first: readonly ServerSentEvent[], stream: EventStream): EventStream {
  let unread: readonly ServerSentEvent[] | undefined = first;
  return {
    kind: stream.kind,
    next: async () => {
      const events = unread ?? stream.next();
      unread = undefined;
      return events;
    },
  };
}

/** Events of a task or of the journal. */
export function journalStream(
  kind: "task" | "events",
  pages: AsyncIterable<{ readonly events: readonly { readonly seq: number }[] }>,
): EventStream {
  return eventStream(kind, pages, ({ events }) =>
    events.map((event) => ({ id: String(event.seq), event: "event", data: JSON.stringify(event) })),
  );
}

/** Headers beside those of every stream. */
type Headers = Readonly<Record<string, OutgoingHttpHeader | undefined>>;

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // Caches and proxies must not buffer a stream.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const satisfies Headers;

/** Readers reconnect after a random delay, so that they do not all come at the same moment. */
const RETRY_MS_MIN = 500;
const RETRY_MS_SPREAD = 2_000;

const HEARTBEAT = ": heartbeat\n\n";

/**
 * Writes a stream until it ends, its reader disconnects, or the reader stalls. The relay holds at most one page per
 * reader: it reads the next one when the last one has left.
 */
export async function writeEvents(
  stream: EventStream,
  response: ServerResponse,
  { headers, host }: { readonly headers: Headers; readonly host: StreamHost },
): Promise<void> {
  const { heartbeatMs, meter, stallMs } = host;
  meter.opened(stream.kind);
  response.once("close", () => meter.closed(stream.kind));
  const allHeaders = { ...headers, ...HEADERS, [HEARTBEAT_HEADER]: heartbeatMs };
  response.writeHead(200, allHeaders as OutgoingHttpHeaders);
  let preface = `retry: ${RETRY_MS_MIN + Math.floor(Math.random() * RETRY_MS_SPREAD)}\n\n`;
  try {
    for (let events = await stream.next(); events !== undefined; events = await stream.next()) {
      if (response.destroyed) return;
      if (!writeNow(response, preface + textOf(events)) && !(await drained(response, stallMs))) {
        meter.cutOff(stream.kind);
        response.destroy();
        return;
      }
      preface = "";
      // While the next page is awaited, this one must not stay in memory.
      events = [];
    }
  } catch (reason) {
    // The reader learns the reason when it reconnects.
    if (RelayError.from(reason).code === "internal") host.onFailure(reason);
  }
  response.end();
}

/** Without the cork, the response would leave only after the stream has read its next page. */
function writeNow(response: ServerResponse, text: string): boolean {
  response.socket?.cork();
  // As bytes: a socket counts the characters of a text, and those of some scripts have three bytes.
  const hasRoom = response.write(Buffer.from(text));
  response.socket?.uncork();
  return hasRoom;
}

function textOf(events: readonly ServerSentEvent[]): string {
  if (events.length === 0) return HEARTBEAT;
  return events.map(textOfEvent).join("");
}

function textOfEvent({ id, event, data }: ServerSentEvent): string {
  return `id: ${id}\n${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}

/** False after `stallMs`. A reader that disconnected has nothing left to take. */
function drained(response: ServerResponse, stallMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const done = (isDrained: boolean): void => {
    clearTimeout(timer);
    response.off("drain", onDrain).off("close", onDrain);
    resolve(isDrained);
  };
  const onDrain = (): void => done(true);
  const timer = setTimeout(() => done(false), stallMs);
  response.on("drain", onDrain).on("close", onDrain);
  return promise;
}
