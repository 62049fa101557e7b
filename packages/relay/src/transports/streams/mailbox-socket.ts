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
import { type LeasePlace, LeaseRoom } from "./lease-room.ts";
import type { SocketHost } from "./socket-session.ts";
import { type Acted, SOCKET_ACTS, type SocketCaller, type SocketCore } from "./socket-verbs.ts";
import { SocketWriter } from "./socket-writer.ts";

/** What is asked of a socket before it is one. */
export interface MailboxSocketOrder extends SocketCaller {
  /** Absent: it shows no mail by itself. */
  readonly pages: AsyncIterable<MailboxPage> | undefined;
  readonly isNotice: boolean;
  /** Where it starts. */
  readonly since: string;
  /** Ends all that waits on behalf of the socket. Aborted with `stopping` at the latest. */
  readonly ended: AbortController;
  /** Aborted when the relay stops, or the connection is gone. */
  readonly stopping: AbortSignal;
}

/** Pulses that may pass without an answer to the ping before the other side counts as gone. */
const UNANSWERED_MAX = 2;
/** How long answers may take to leave when the relay stops, before whoever does not take them is left without. */
const STOP_MS = 4_000;
/** Why coming back would be of no use; any other reason may pass. */
const REFUSALS: ReadonlySet<RelayErrorCode> = new Set<RelayErrorCode>([
  "not_found",
  "permission_denied",
  "unknown_agent",
]);
/** A close frame carries no longer reason. */
const REASON_BYTES_MAX = 123;

const parseRequest = shapeParserOf(SocketRequestSchema, "request");

/**
 * One open socket: mail goes out page by page, requests are answered in whatever order they are done. It is the
 * only one that writes to its connection, and nobody finds it by the name of its agent, so that an old session
 * cannot be taken for a new one.
 */
export class MailboxSocket {
  readonly #core: SocketCore;
  readonly #order: MailboxSocketOrder;
  readonly #socket: WebSocket;
  readonly #host: SocketHost;
  readonly #writer: SocketWriter;
  readonly #leaseRoom = new LeaseRoom();
  /** Frames that came in one piece with others and have to wait for room. */
  readonly #waiting: (readonly [data: Buffer, isBinary: boolean])[] = [];
  #active = 0;
  #activeBytes = 0;
  #unanswered = 0;
  #cursor: string;
  #stopTimer: NodeJS.Timeout | undefined;
  /** Why the socket closes once what was asked is answered. */
  #ending: unknown;

  constructor(core: SocketCore, order: MailboxSocketOrder, socket: WebSocket, host: SocketHost) {
    this.#core = core;
    this.#order = order;
    this.#socket = socket;
    this.#host = host;
    this.#cursor = order.since;
    this.#writer = new SocketWriter(socket, host.stallMs, {
      onLeft: () => this.#goOn(),
      onStall: () => this.#cutOff(),
    });
  }

  run(): void {
    const { meter, pulses } = this.#host;
    const leave = pulses.join(() => void this.#beat());
    meter.opened("socket");
    this.#socket.on("message", (data, isBinary) => this.#take(bytesOf(data), isBinary));
    this.#socket.on("ping", (data) => this.#pong(data));
    this.#socket.on("pong", () => (this.#unanswered = 0));
    const stop = (): void => {
      this.#stopTimer = setTimeout(() => this.#socket.terminate(), STOP_MS);
      this.#closeWhenDone();
    };
    this.#socket.once("close", () => {
      leave();
      clearTimeout(this.#stopTimer);
      this.#order.stopping.removeEventListener("abort", stop);
      this.#writer.stop();
      this.#waiting.length = 0;
      meter.closed("socket");
    });
    this.#order.stopping.addEventListener("abort", stop, { once: true });
    if (this.#order.stopping.aborted) stop();
    else void this.#showMail();
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** The next page is read when this one has left; a reader that does not take it holds no more than that. */
  async #showMail(): Promise<void> {
    const pages = this.#order.pages?.[Symbol.asyncIterator]();
    try {
      for (let isTaken = pages !== undefined; isTaken;) {
        const frame = await this.#nextMail(pages);
        isTaken = frame !== undefined && (await this.#writer.send(frame));
      }
      await pages?.return?.();
      // Whoever is shown nothing more must not be left to wait for it.
      if (pages !== undefined && !this.#order.stopping.aborted) {
        this.#close(SOCKET_CLOSE.internal, "no more mail can be shown; open the socket again");
      }
    } catch (reason) {
      this.#failed(reason);
    }
  }

  /** Undefined at the end. */
  async #nextMail(pages: AsyncIterator<MailboxPage> | undefined): Promise<string | undefined> {
    for (;;) {
      const step = await pages?.next();
      if (step === undefined || step.done === true) return undefined;
      const { items: shown, cursor } = step.value;
      if (shown.length === 0) continue;
      this.#cursor = cursor;
      const items = shown.map(({ item }) => item);
      const frame = this.#order.isNotice
        ? { type: "notice", notices: items }
        : { type: "mail", messages: items };
      return JSON.stringify({ ...frame, cursor });
    }
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (!this.#isOpen) return;
    if (this.#hasRoom && this.#waiting.length === 0) {
      void this.#answer(data, isBinary);
      return;
    }
    this.#waiting.push([data, isBinary]);
    this.#socket.pause();
  }

  #pong(data: Buffer): void {
    this.#writer.pong(data);
    if (this.#writer.isFull) this.#socket.pause();
  }

  /** Something has left: there may be room for what waits, and then for more. */
  #goOn(): void {
    if (!this.#socket.isPaused) return;
    while (this.#hasRoom) {
      const next = this.#waiting.shift();
      if (next === undefined) return this.#socket.resume();
      void this.#answer(...next);
    }
  }

  get #hasRoom(): boolean {
    const isBusy = this.#active >= LIMITS.socketRequestsMax || this.#activeBytes >= LIMITS.batchBodyBytesMax;
    return !isBusy && !this.#writer.isFull;
  }

  /** A request counts until its answer has left, so that whoever does not take answers is asked nothing more. */
  async #answer(data: Buffer, isBinary: boolean): Promise<void> {
    this.#active += 1;
    this.#activeBytes += data.length;
    {
      using place = this.#leaseRoom.place();
      const { body: frame, undo } = await this.#frameFor(data, isBinary, place);
      const hasLeft = await this.#writer.send(frame);
      if (!hasLeft) await undo?.().catch((reason: unknown) => this.#report(reason));
    }
    this.#active -= 1;
    this.#activeBytes -= data.length;
    this.#goOn();
    if (this.#ending !== undefined) this.#failed(this.#ending);
    else if (this.#order.stopping.aborted) this.#closeWhenDone();
  }

  async #frameFor(
    data: Buffer,
    isBinary: boolean,
    place: LeasePlace,
  ): Promise<Acted & { readonly body: string }> {
    let id: string | undefined;
    try {
      if (isBinary) throw new RelayError("invalid_argument", "frame: is binary; send JSON as text");
      const frame = parseJson(data, "frame");
      id = idOf(frame);
      const { verb, input } = parseRequest(frame) as SocketRequest;
      await this.#assertWelcome();
      const acted = await SOCKET_ACTS[verb](this.#core, this.#order, input, this.#takingInto(place));
      return { ...acted, body: JSON.stringify({ type: "answer", id, body: acted.body }) };
    } catch (reason) {
      const error = this.#report(reason);
      const to = id === undefined ? { type: "error" } : { type: "answer", id };
      return { body: JSON.stringify({ ...to, ...toErrorBody(error) }) };
    }
  }

  #takingInto(place: LeasePlace): LeaseOptions {
    return {
      signal: this.#order.ended.signal,
      isGone: () => !this.#isOpen,
      bytesMax: LIMITS.socketBufferBytesMax,
      // It may have closed while there was no room.
      whenRoom: (take) => place.fill(async () => (this.#isOpen ? take() : [])),
    };
  }

  /** What went wrong inside is for the log, and not for the other side. */
  #report(reason: unknown): RelayError {
    const error = RelayError.from(reason);
    if (error.code === "internal") this.#host.onFailure(reason);
    return error;
  }

  /** The relay stays, and the key still opens it. */
  async #assertWelcome(): Promise<void> {
    if (this.#order.stopping.aborted) {
      throw new RelayError("unavailable", "the relay is stopping; try again in a moment");
    }
    try {
      await this.#core.guard.assertStillValid(this.#order.principal);
    } catch (reason) {
      if (RelayError.from(reason).code === "unauthenticated") this.#ending = reason;
      throw reason;
    }
  }

  async #beat(): Promise<void> {
    // Whoever is not listened to cannot be heard; that it takes its answers is looked after elsewhere.
    if (this.#socket.isPaused || !this.#isOpen) return;
    if (this.#unanswered >= UNANSWERED_MAX) {
      this.#socket.terminate();
      return;
    }
    this.#unanswered += 1;
    this.#writer.ping();
    try {
      await this.#core.guard.assertStillValid(this.#order.principal);
    } catch (reason) {
      this.#failed(reason);
    }
  }

  #cutOff(): void {
    // It may be on its way out already, for whatever reason.
    if (!this.#isOpen) return;
    this.#host.meter.cutOff("socket");
    this.#close(SOCKET_CLOSE.slow, this.#cursor);
  }

  /** What is under way is answered first; whoever waits is answered at once. */
  #closeWhenDone(): void {
    this.#order.ended.abort();
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
    // The other side's goodbye has to be read as well.
    this.#socket.resume();
  }
}

/** Whose answer it will be, if it says so in a way that can be repeated. */
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
  // What is cut in the middle of a character ends before it.
  return bytes.length <= REASON_BYTES_MAX
    ? reason
    : new TextDecoder().decode(bytes.subarray(0, REASON_BYTES_MAX), { stream: true });
}
