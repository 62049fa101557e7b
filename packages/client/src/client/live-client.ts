import {
  type EventsQuery,
  type EventsResponse,
  type EventView,
  type MailboxItem,
  type MailboxNotice,
  type MailboxStreamQuery,
  operations,
  type PushEndpointView,
  type PushQuery,
  type PushReplayed,
  type PushReplayRequest,
  type PushRotated,
  type PushRotateRequest,
  quote,
  RelayError,
  type StreamEventName,
  type TaskEventsQuery,
  type TaskEventView,
} from "@a2a-relay/protocol";
import { TransportBlocked } from "../http/http-answer.ts";
import type { CallOptions, HttpExchange } from "../http/http-exchange.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import { type RetryDelays, untilReached } from "../http/retry.ts";
import type { InboxFrame } from "../live/inbox-frames.ts";
import { inboxOverSocket } from "../live/inbox-over-socket.ts";
import { type FollowedCall, type FollowOptions, ResumedStream } from "../live/resumed-stream.ts";
import { SocketChannel, type SocketChannelParts, type SocketOptions } from "../live/socket-channel.ts";

/** With the cursor to resume from after it. */
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

/** The filters of the journal; limits and waiting times do not apply to a stream. */
export type EventsStreamQuery = Omit<EventsQuery, "limit" | "wait_ms">;

/**
 * Live deliveries: as a stream, over a socket, or pushed to the agent.
 *
 * A stream lasts until its reader leaves it or its signal is aborted. After a break it reconnects, with backoff and
 * jitter, and resumes after the last item, without gap or repetition. It rejects with errors that a retry cannot fix,
 * such as an unknown agent or a revoked key.
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
   * Deliveries as they arrive: first all open ones, or those after `since`. Marks them as delivered, as reading does,
   * unless `peek` is set. With `notice` only notices, not the messages.
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
    const operation = operations.mailboxes.stream;
    const call = { operation, params: { agent_id: agentId }, query: rest, since };
    if (query.notice === true) {
      const notices = this.#follow<MailboxNotice>(call, "notice", options);
      for await (const [notice, cursor] of notices) yield { notice, cursor };
      return;
    }
    for await (const [item, cursor] of this.#follow<MailboxItem>(call, "message", options))
      yield { item, cursor };
  }

  /**
   * Like `streamMailbox`, a page at a time, over a socket, or as a stream where no socket can be opened. Rejects with
   * TransportBlocked, or with the refusal of the stream, where neither works.
   */
  async *followMailbox(
    agentId: string,
    query: MailboxStreamQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<InboxFrame> {
    let { since } = query;
    try {
      for await (const frame of inboxOverSocket(this.#socketParts(agentId), query, options)) {
        since = frame.cursor;
        yield frame;
      }
      return;
    } catch (reason) {
      if (!(reason instanceof TransportBlocked)) throw reason;
    }
    const rest = since === undefined ? query : { ...query, since };
    const stream: AsyncIterable<StreamedItem | StreamedNotice> = this.streamMailbox(agentId, rest, options);
    for await (const streamed of stream) yield frameOf(streamed);
  }

  /** The journal as it grows: all of it, the events after `since`, or only new ones with `since: "latest"`. */
  async *streamEvents(
    query: EventsStreamQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<StreamedEvent> {
    const { since, ...rest } = query;
    const from = since === "latest" ? await this.#latestCursor(options) : since;
    const call = { operation: operations.journal.events, query: rest, since: from };
    for await (const [event, cursor] of this.#follow<EventView>(call, "event", options))
      yield { event, cursor };
  }

  /** The events of a task, from its beginning or after `since`. Ends with the task. */
  async *streamTask(
    taskId: string,
    query: TaskEventsQuery = {},
    options: FollowOptions = {},
  ): AsyncIterable<StreamedTaskEvent> {
    const call = { operation: operations.tasks.events, params: { id: taskId }, since: query.since };
    for await (const [event, cursor] of this.#follow<TaskEventView>(call, "event", options))
      yield { event, cursor };
  }

  /**
   * One connection for sending, leasing and acknowledging, which also delivers messages. Rejects when it cannot be
   * opened now; once open, it reconnects after a break.
   */
  openSocket(agentId: string, options: SocketOptions = {}): Promise<SocketChannel> {
    return SocketChannel.open(this.#socketParts(agentId), options);
  }

  /** The agent's push endpoint, its state, and the latest pushes. */
  push(id: string, query: PushQuery = {}, options: CallOptions = {}): Promise<PushEndpointView> {
    return this.#exchange.call(operations.push.get, { params: { id }, query }, options);
  }

  /** Makes a new secret for pushes; only this answer contains it. Not repeated after a lost reply. */
  rotatePushSecret(
    id: string,
    request: PushRotateRequest = {},
    options: CallOptions = {},
  ): Promise<PushRotated> {
    return this.#exchange.call(operations.push.rotate, { params: { id }, body: request }, options);
  }

  /** Pushes open messages again. Not repeated after a lost reply: it would push them once more. */
  replayPushes(id: string, request: PushReplayRequest, options: CallOptions = {}): Promise<PushReplayed> {
    return this.#exchange.call(operations.push.replay, { params: { id }, body: request }, options);
  }

  #socketParts(agentId: string): SocketChannelParts {
    return { exchange: this.#exchange, options: this.#options, agentId };
  }

  /** Resolves "latest" once, so that a stream that breaks before its first event misses nothing. */
  async #latestCursor({
    signal = new AbortController().signal,
    onAway = () => {},
  }: FollowOptions): Promise<string> {
    const query = { since: "latest", limit: 1 };
    const ask = (): Promise<EventsResponse> =>
      this.#exchange.call(operations.journal.events, { query, repeat: "never" }, { signal });
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
        // Skips events of a newer relay. The client trusts all others to have the declared shape.
        if (event.event === name) yield [parseData(event.data) as T, event.id];
      }
    } finally {
      stream.close();
    }
  }
}

function frameOf(streamed: StreamedItem | StreamedNotice): InboxFrame {
  const { cursor } = streamed;
  return "item" in streamed
    ? { type: "mail", messages: [streamed.item], cursor }
    : { type: "notice", notices: [streamed.notice], cursor };
}

function parseData(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    const message = `the stream holds ${quote(data.slice(0, 100))} instead of JSON; is it really one of an a2a-relay?`;
    throw new RelayError("unavailable", message, { cause });
  }
}
