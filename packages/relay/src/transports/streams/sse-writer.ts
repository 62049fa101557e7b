import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { HEARTBEAT_HEADER, RelayError } from "@a2a-relay/protocol";
import type { EventStream, ServerSentEvent } from "./event-stream.ts";
import type { StreamMeter } from "./stream-meter.ts";

export interface SseHost {
  readonly meter: StreamMeter;
  /** How often there is a sign of life, which readers are told. */
  readonly heartbeatMs: number;
  /** How long a reader may take for what it was sent. */
  readonly stallMs: number;
  /** Where failures go that the reader must not see. */
  onFailure(reason: unknown): void;
}

/** What is to be said beside what every stream says. */
type Headers = Readonly<Record<string, OutgoingHttpHeader | undefined>>;

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // A stream that a cache or a proxy gathers is none.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const satisfies Headers;

/** How soon whoever lost its stream comes back: not all of them at the same moment. */
const RETRY_MS_MIN = 500;
const RETRY_MS_SPREAD = 2_000;

const SIGN_OF_LIFE = ": heartbeat\n\n";

/**
 * Writes a stream of events until it ends, its reader has gone, or the reader does not take them. At any time it
 * holds what the reader was sent last and no more: the next events are asked for once those have left.
 */
export async function writeEvents(
  stream: EventStream,
  response: ServerResponse,
  { headers, host }: { readonly headers: Headers; readonly host: SseHost },
): Promise<void> {
  const { heartbeatMs, meter, stallMs } = host;
  meter.opened(stream.kind);
  response.once("close", () => meter.closed(stream.kind));
  const said = { ...headers, ...HEADERS, [HEARTBEAT_HEADER]: heartbeatMs };
  response.writeHead(200, said as OutgoingHttpHeaders);
  let preface = `retry: ${RETRY_MS_MIN + Math.floor(Math.random() * RETRY_MS_SPREAD)}\n\n`;
  try {
    for (;;) {
      const bytes = bytesOf(await stream.next(), preface);
      preface = "";
      if (bytes === undefined) break;
      if (response.destroyed) return;
      if (writeNow(response, bytes) || (await drained(response, stallMs))) continue;
      meter.cutOff(stream.kind);
      response.destroy();
      return;
    }
  } catch (reason) {
    // Whatever ended it: the reader comes back, and is told then.
    if (RelayError.from(reason).code === "internal") host.onFailure(reason);
  }
  response.end();
}

/** Left to itself, a response writes at the end of the turn, and by then the stream has looked for what comes next. */
function writeNow(response: ServerResponse, bytes: Buffer): boolean {
  response.socket?.cork();
  const hasRoom = response.write(bytes);
  response.socket?.uncork();
  return hasRoom;
}

/** As bytes, because a socket counts characters of a text, and those of some scripts are three times as long. */
function bytesOf(events: readonly ServerSentEvent[] | undefined, preface: string): Buffer | undefined {
  return events === undefined ? undefined : Buffer.from(preface + textOf(events));
}

function textOf(events: readonly ServerSentEvent[]): string {
  if (events.length === 0) return SIGN_OF_LIFE;
  return events.map(textOfEvent).join("");
}

function textOfEvent({ id, event, data }: ServerSentEvent): string {
  return `id: ${id}\n${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}

/** False when the time was over first. A reader that has gone has nothing left to take. */
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
