import { type EventsQuery, type EventsResponse, type EventView, type MailboxItem, type MailboxNotice, type MailboxStreamQuery, type PushEndpointView, type PushQuery, type PushReplayed, type PushReplayRequest, type PushRotated, type PushRotateRequest, quote, RelayError, type StreamEventName, type TaskEventsQuery, type TaskEventView } from "@a2a-relay/protocol";
import { TransportBlocked } from "../http/http-answer.ts";
import type { CallOptions, HttpExchange } from "../http/http-exchange.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import type { InboxFrame } from "../live/inbox-frames.ts";
import { mailOverSocket } from "../live/inbox-over-socket.ts";
import { type FollowedCall, type FollowOptions, ResumedStream } from "../live/resumed-stream.ts";
import { SocketChannel, type SocketChannelParts, type SocketOptions } from "../live/socket-channel.ts";

/** Each has the cursor to go on from after it. */
export interface StreamedItem {
  readonly item: MailboxItem;
  readonly cursor: string;
}

export interface StreamedNotice {
  readonly notice: MailboxNotice;
  readonly cursor: string;
}

export interface StreamedEvent {
  readonly event: EventView;
  readonly cursor: string;
}

export interface StreamedTaskEvent {
  readonly event: TaskEventView;
  readonly cursor: string;
}

/** Which events of the journal; how many at a time and how long to wait is of no meaning for a stream. */
export type EventsStreamQuery = Omit<EventsQuery, "limit" | "wait_ms">;

/**
 * How mail comes by itself: as a stream, over a socket, or pushed to where the agent is.
 *
 * A stream lives until its reader leaves it or its signal is aborted. It is opened again, after a delay with jitter,
 * whenever it breaks, and goes on after the last thing it brought, without gap or repetition. It rejects with what
 * trying again cannot mend, such as an unknown agent or a key that was revoked.
 */
export class LiveClient {
  readonly #exchange: HttpExchange;
  readonly #options: FilledClientOptions;
  readonly #delays: RetryDelays;

  constructor(options: FilledClientOptions, exchange: HttpExchange) {
    this.#exchange = exchange;
    this.#options = options;
    this.#delays = { firstMs: options.retryDelayMs, maxMs: options.retryDelayMsMax };
  }

  /**
   * MailboxMessage as it comes: first all that is open, or what came after `since`. Being shown leaves a mark, as reading does,
   * unless `peek` is set. With `notice` only what there is, not the messages.
   */
  streamMailbox(
    agentId: string,
    query: MailboxStreamQuery & { readonly notice: true },
    options?: FollowOptions,
  ): AsyncIterable<StreamedNotice>;
  streamMailbox(
    agentId: string,
    query?: MailboxStreamQuery,
    options?: FollowOptions,
  ): AsyncIterable<StreamedItem>;
  async *streamMailbox(
    agentId: string,
    query: MailboxStreamQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<StreamedItem | StreamedNotice> {
    const { since, ...rest } = query;
    const call = { path: ["mailbox", agentId, "stream"], query: rest, since };
    if (query.notice === true) {
      const notices = this.#follow<MailboxNotice>(call, "notice", options);
      for await (const [notice, cursor] of notices) yield { notice, cursor };
      return;
    }
    for await (const [item, cursor] of this.#follow<MailboxItem>(call, "message", options))
      yield { item, cursor };
  }

  /**
   * MailboxMessage as `streamMailbox` has it, a step at a time, in the better way that is open: over a socket, or as a stream
   * where none can be had. Rejects with TransportBlocked, or with what a stream is refused with, where neither can.
   */
  async *followMailbox(
    agentId: string,
    query: MailboxStreamQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<InboxFrame> {
    let { since } = query;
    try {
      for await (const frame of mailOverSocket(this.#socketParts(agentId), query, options)) {
        since = frame.cursor;
        yield frame;
      }
      return;
    } catch (reason) {
      if (!(reason instanceof TransportBlocked)) throw reason;
    }
    const rest = since === undefined ? query : { ...query, since };
    const mail: AsyncIterable<StreamedItem | StreamedNotice> = this.streamMailbox(agentId, rest, options);
    for await (const shown of mail) yield frameOf(shown);
  }

  /** The journal as it grows: all of it, what came after `since`, or what comes from now on with `since: "latest"`. */
  async *streamEvents(
    query: EventsStreamQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<StreamedEvent> {
    const { since, ...rest } = query;
    const from = since === "latest" ? await this.#latestCursor(options) : since;
    const call = { path: ["events"], query: rest, since: from };
    for await (const [event, cursor] of this.#follow<EventView>(call, "event", options))
      yield { event, cursor };
  }

  /** What happens to a task, from its beginning or after `since`. Ends when the task has. */
  async *streamTask(
    taskId: string,
    query: TaskEventsQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<StreamedTaskEvent> {
    const call = { path: ["tasks", taskId, "events"], query: {}, since: query.since };
    for await (const [event, cursor] of this.#follow<TaskEventView>(call, "event", options))
      yield { event, cursor };
  }

  /**
   * One connection for sending, leasing and acknowledging, over which mail comes by itself as well. Rejects when it
   * cannot be opened now; once it was, it is opened again by itself whenever it breaks.
   */
  openSocket(agentId: string, options: SocketOptions = {}): Promise<SocketChannel> {
    return SocketChannel.open(this.#socketParts(agentId), options);
  }

  /** Where the agent's mail is pushed to, how that goes, and the latest pushes. */
  push(id: string, query: PushQuery = {}, options: CallOptions = {}): Promise<PushEndpointView> {
    const call = { method: "GET", path: ["agents", id, "push"], query, repeat: "always" } as const;
    return this.#exchange.json(call, "pushes", options);
  }

  /** Makes a new secret for pushes, which only this answer shows. Not repeated after a lost reply. */
  rotatePushSecret(
    id: string,
    request: PushRotateRequest = {},
    options: CallOptions = {},
  ): Promise<PushRotated> {
    const path = ["agents", id, "push", "rotate"];
    const call = { method: "POST", path, body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "push_secret", options);
  }

  /** Pushes open mail again. Not repeated after a lost reply: it would push all of it once more. */
  replayPushes(id: string, request: PushReplayRequest, options: CallOptions = {}): Promise<PushReplayed> {
    const path = ["agents", id, "push", "replay"];
    const call = { method: "POST", path, body: request, repeat: "if_not_done" } as const;
    return this.#exchange.json(call, "replayed", options);
  }

  #socketParts(agentId: string): SocketChannelParts {
    return { exchange: this.#exchange, options: this.#options, agentId };
  }

  /** Where "latest" is now: a stream that breaks before its first event must not begin at a later end. */
  async #latestCursor({
    signal = new AbortController().signal,
    onAway = () => {},
  }: FollowOptions): Promise<string> {
    const query = { since: "latest", limit: 1 };
    const call = { method: "GET", path: ["events"], query, repeat: "never" } as const;
    const ask = (): Promise<EventsResponse> => this.#exchange.json(call, "cursor", { signal });
    return (await untilReached(ask, { signal, delays: this.#delays, onAway })).cursor;
  }

  async *#follow<T>(
    call: FollowedCall,
    name: StreamEventName,
    options: FollowOptions,
  ): AsyncGenerator<readonly [value: T, cursor: string], void> {
    const parts = { exchange: this.#exchange, delays: this.#delays };
    const stream = new ResumedStream(call, parts, options);
    try {
      for (let event = await stream.next(); event !== undefined; event = await stream.next()) {
        // A newer relay may have more to tell than this client knows of. What it does know is trusted to have the
        // shape that the protocol package declares.
        if (event.event === name) yield [parseData(event.data) as T, event.id];
      }
    } finally {
      stream.close();
    }
  }
}

function frameOf(shown: StreamedItem | StreamedNotice): InboxFrame {
  const { cursor } = shown;
  return "item" in shown
    ? { type: "mail", messages: [shown.item], cursor }
    : { type: "notice", notices: [shown.notice], cursor };
}

function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    const message = `the stream holds ${quote(data.slice(0, 100))} instead of JSON; is it really one of an a2a-relay?`;
    throw new RelayError("unavailable", message, { cause });
  }
}
