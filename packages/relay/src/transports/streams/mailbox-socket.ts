import type { WebSocket } from "@fastify/websocket";
import {
  LIMITS,
  RelayError,
  type RelayErrorCode,
  SOCKET_CLOSE,
  type SocketRequest,
  SocketRequestSchema,
  toErrorBody,
} from "@a2a-relay/protocol";
import { shapeParserOf } from "../../core/mechanisms/schema-check.ts";
import type { MailboxPage } from "../../core/mailboxes/mailbox-stream.ts";
import type { LeaseOptions } from "../../core/mailboxes/mailbox-service.ts";
import { parseJson } from "../http/read-body.ts";
import type { SocketHost } from "../http/route.ts";
import type { HeartbeatTimer } from "./heartbeat-timer.ts";
import { LeaseLimiter, type LeaseSlot } from "./lease-limiter.ts";
import { type Acted, SOCKET_ACTS, type SocketCaller, type SocketCore } from "./socket-verbs.ts";
import { SocketWriter } from "./socket-writer.ts";

export interface MailboxSocketHost extends SocketHost {
  readonly heartbeats: HeartbeatTimer;
}

/** An accepted caller, and what it asked for when it connected. */
export interface MailboxSession extends SocketCaller {
  /** Undefined for a quiet socket, which only answers requests. */
  readonly pages: AsyncIterable<MailboxPage> | undefined;
  readonly isNotice: boolean;
  /** The cursor of the last message that the reader has. */
  readonly since: string;
  /** Ends everything that waits for the socket. Aborted with `stopping` at the latest. */
  readonly ended: AbortController;
  /** Aborted when the relay stops or the client disconnects. */
  readonly stopping: AbortSignal;
}

/** Unanswered pings after which the relay closes the connection. */
const UNANSWERED_MAX = 2;
/** How long answers may take to leave when the relay stops. */
const STOP_MS = 4_000;
/** Errors after which reconnecting does not help. */
const REFUSALS: ReadonlySet<RelayErrorCode> = new Set<RelayErrorCode>([
  "not_found",
  "permission_denied",
  "unknown_agent",
]);
/** The longest reason that a close frame carries. */
const REASON_BYTES_MAX = 123;

const parseRequest = shapeParserOf(SocketRequestSchema, "request");

/**
 * One open socket. It sends messages page by page and answers requests in the order in which they finish. Only it
 * writes to its connection, and there is no index of sockets by agent, so an old session cannot be taken for a new one.
 */
export class MailboxSocket {
  readonly #core: SocketCore;
  readonly #session: MailboxSession;
  readonly #socket: WebSocket;
  readonly #host: MailboxSocketHost;
  readonly #writer: SocketWriter;
  readonly #leases = new LeaseLimiter();
  /** Frames that arrived after the limit was reached, until the socket pauses. */
  readonly #queue: (readonly [data: Buffer, isBinary: boolean])[] = [];
  #active = 0;
  #activeBytes = 0;
  #unanswered = 0;
  #cursor: string;
  #stopTimer: NodeJS.Timeout | undefined;
  /** Why the socket closes after it has answered the requests under way. */
  #ending: unknown;

  constructor(core: SocketCore, session: MailboxSession, socket: WebSocket, host: MailboxSocketHost) {
    this.#core = core;
    this.#session = session;
    this.#socket = socket;
    this.#host = host;
    this.#cursor = session.since;
    this.#writer = new SocketWriter(socket, host.stallMs, {
      onLeft: () => this.#goOn(),
      onStall: () => this.#cutOff(),
    });
  }

  run(): void {
    const { meter, heartbeats } = this.#host;
    const stopHeartbeat = heartbeats.add(() => void this.#beat());
    meter.opened("socket");
    this.#socket.on("message", (data, isBinary) => this.#take(bytesOf(data), isBinary));
    this.#socket.on("ping", (data) => this.#pong(data));
    this.#socket.on("pong", () => (this.#unanswered = 0));
    const stop = (): void => {
      this.#stopTimer = setTimeout(() => this.#socket.terminate(), STOP_MS);
      this.#closeWhenDone();
    };
    this.#socket.once("close", () => {
      stopHeartbeat();
      clearTimeout(this.#stopTimer);
      this.#session.stopping.removeEventListener("abort", stop);
      this.#writer.stop();
      this.#queue.length = 0;
      meter.closed("socket");
    });
    this.#session.stopping.addEventListener("abort", stop, { once: true });
    if (this.#session.stopping.aborted) stop();
    else void this.#sendPages();
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** Reads the next page when the last one has left, so that a slow reader holds one page at most. */
  async #sendPages(): Promise<void> {
    const pages = this.#session.pages?.[Symbol.asyncIterator]();
    try {
      for (let isTaken = pages !== undefined; isTaken;) {
        const frame = await this.#nextFrame(pages);
        isTaken = frame !== undefined && (await this.#writer.send(frame));
      }
      await pages?.return?.();
      // The client must not wait for messages that never come.
      if (pages !== undefined && !this.#session.stopping.aborted) {
        this.#close(SOCKET_CLOSE.internal, "the stream of messages ended; open the socket again");
      }
    } catch (reason) {
      this.#failed(reason);
    }
  }

  /** Undefined at the end. */
  async #nextFrame(pages: AsyncIterator<MailboxPage> | undefined): Promise<string | undefined> {
    for (;;) {
      const step = await pages?.next();
      if (step === undefined || step.done === true) return undefined;
      const { items: shown, cursor } = step.value;
      if (shown.length === 0) continue;
      this.#cursor = cursor;
      const items = shown.map(({ item }) => item);
      const frame = this.#session.isNotice
        ? { type: "notice", notices: items }
        : { type: "mail", messages: items };
      return JSON.stringify({ ...frame, cursor });
    }
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (!this.#isOpen) return;
    if (this.#hasRoom && this.#queue.length === 0) {
      void this.#answer(data, isBinary);
      return;
    }
    this.#queue.push([data, isBinary]);
    this.#socket.pause();
  }

  #pong(data: Buffer): void {
    this.#writer.pong(data);
    if (this.#writer.isFull) this.#socket.pause();
  }

  /** Answers queued frames while there is room, then reads from the socket again. */
  #goOn(): void {
    if (!this.#socket.isPaused) return;
    while (this.#hasRoom) {
      const next = this.#queue.shift();
      if (next === undefined) return this.#socket.resume();
      void this.#answer(...next);
    }
  }

  get #hasRoom(): boolean {
    const isBusy = this.#active >= LIMITS.socketRequestsMax || this.#activeBytes >= LIMITS.batchBodyBytesMax;
    return !isBusy && !this.#writer.isFull;
  }

  /** A request counts until its answer has left: the relay reads no further requests from a slow reader. */
  async #answer(data: Buffer, isBinary: boolean): Promise<void> {
    this.#active += 1;
    this.#activeBytes += data.length;
    {
      using slot = this.#leases.slot();
      const { body: frame, undo } = await this.#frameFor(data, isBinary, slot);
      const hasLeft = await this.#writer.send(frame);
      if (!hasLeft) await undo?.().catch((reason: unknown) => this.#report(reason));
    }
    this.#active -= 1;
    this.#activeBytes -= data.length;
    this.#goOn();
    if (this.#ending !== undefined) this.#failed(this.#ending);
    else if (this.#session.stopping.aborted) this.#closeWhenDone();
  }

  async #frameFor(
    data: Buffer,
    isBinary: boolean,
    slot: LeaseSlot,
  ): Promise<Acted & { readonly body: string }> {
    let id: string | undefined;
    try {
      if (isBinary) throw new RelayError("invalid_argument", "frame: is binary; send JSON as text");
      const frame = parseJson(data, "frame");
      id = idOf(frame);
      const { verb, input } = parseRequest(frame) as SocketRequest;
      await this.#readmit();
      const acted = await SOCKET_ACTS[verb](this.#core, this.#session, input, this.#takingInto(slot));
      return { ...acted, body: JSON.stringify({ type: "answer", id, body: acted.body }) };
    } catch (reason) {
      const error = this.#report(reason);
      const to = id === undefined ? { type: "error" } : { type: "answer", id };
      return { body: JSON.stringify({ ...to, ...toErrorBody(error) }) };
    }
  }

  #takingInto(slot: LeaseSlot): LeaseOptions {
    return {
      signal: this.#session.ended.signal,
      isGone: () => !this.#isOpen,
      bytesMax: LIMITS.socketBufferBytesMax,
      // The socket may have closed while the request waited for its slot.
      whenRoom: (take) => slot.fill(async () => (this.#isOpen ? take() : [])),
    };
  }

  /** Logs an internal error; the client does not see its text. */
  #report(reason: unknown): RelayError {
    const error = RelayError.from(reason);
    if (error.code === "internal") this.#host.onFailure(reason);
    return error;
  }

  async #readmit(): Promise<void> {
    try {
      await this.#host.gateway.readmit(this.#session.principal);
    } catch (reason) {
      if (RelayError.from(reason).code === "unauthenticated") this.#ending = reason;
      throw reason;
    }
  }

  async #beat(): Promise<void> {
    // A paused socket reads no pongs; the writer's stall timer watches it instead.
    if (this.#socket.isPaused || !this.#isOpen) return;
    if (this.#unanswered >= UNANSWERED_MAX) {
      this.#socket.terminate();
      return;
    }
    this.#unanswered += 1;
    this.#writer.ping();
    try {
      await this.#core.guard.assertStillValid(this.#session.principal);
    } catch (reason) {
      this.#failed(reason);
    }
  }

  #cutOff(): void {
    if (!this.#isOpen) return;
    this.#host.meter.cutOff("socket");
    this.#close(SOCKET_CLOSE.slow, this.#cursor);
  }

  /** Answers requests under way first; those that wait are answered at once. */
  #closeWhenDone(): void {
    this.#session.ended.abort();
    if (this.#active === 0) this.#close(SOCKET_CLOSE.stopping, "the relay is stopping");
  }

  #failed(reason: unknown): void {
    const { code, message } = this.#report(reason);
    if (code === "unauthenticated") return this.#close(SOCKET_CLOSE.unauthenticated, message);
    this.#close(REFUSALS.has(code) ? SOCKET_CLOSE.refused : SOCKET_CLOSE.internal, message);
  }

  #close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#socket.close(code, shorten(reason));
    // A paused socket would not read the client's close frame.
    this.#socket.resume();
  }
}

/** The id of the request, if the answer can repeat it. */
function idOf(frame: unknown): string | undefined {
  if (typeof frame !== "object" || frame === null || !("id" in frame)) return undefined;
  const { id } = frame;
  return typeof id === "string" && id !== "" && id.length <= LIMITS.idCharsMax ? id : undefined;
}

function bytesOf(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
}

function shorten(reason: string): string {
  const bytes = Buffer.from(reason);
  // `stream` drops a character that the limit cuts in two.
  return bytes.length <= REASON_BYTES_MAX
    ? reason
    : new TextDecoder().decode(bytes.subarray(0, REASON_BYTES_MAX), { stream: true });
}
