import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { GatheredBody } from "./gathered-body.ts";
import { Piece, type ReusedMemory } from "./reused-memory.ts";

/** A body to be read; of a request it is known how long it is. */
type BodyStream = Readable & Partial<Pick<IncomingMessage, "headers">>;

export interface BodyReading<Body> {
  readonly bytesMax: number;
  /** Where a large body is put together. */
  readonly memory: ReusedMemory;
  /** The bytes are its own, to be given back when it has read them. */
  readonly parse: (body: Piece) => Body;
}

/**
 * Reads a body and makes of it what `parse` does. A body over the limit is read on and thrown away, up to a bound,
 * before the refusal: a client that is still sending would otherwise see a reset connection instead of the 413.
 */
export async function readBody<Body>(
  stream: BodyStream,
  { bytesMax, memory, parse }: BodyReading<Body>,
): Promise<Body> {
  // What came with the headers is there then, and mostly that is all of it.
  await Promise.resolve();
  return parse(readAtOnce(stream, bytesMax) ?? (await readToEnd(stream, bytesMax, memory)));
}

/** A body that is there as a whole, without the events by which a stream tells of its parts and its end. */
function readAtOnce(stream: BodyStream, bytesMax: number): Piece | undefined {
  const bytes = stream.readableLength;
  const isWhole = bytes > 0 && bytes === announcedLength(stream);
  return isWhole && bytes <= bytesMax ? new Piece(stream.read() as Buffer) : undefined;
}

function announcedLength({ headers }: BodyStream): number | undefined {
  const announced = headers?.["content-length"];
  return announced === undefined ? undefined : Number(announced);
}

/** For requests that are answered: of a body that was read at once, its end has still to be taken notice of. */
export function endBody(request: IncomingMessage): void {
  if (request.readableDidRead && !request.readableEnded) request.resume();
}

function readToEnd(stream: BodyStream, bytesMax: number, memory: ReusedMemory): Promise<Piece> {
  return new Promise((resolve, reject) => {
    const announced = announcedLength(stream);
    const body = new GatheredBody(memory, announced);
    let bytes = 0;
    const isOver = (): boolean => Math.max(bytes, announced ?? 0) > bytesMax;
    let drainTimer: NodeJS.Timeout | undefined;
    const broken = (cause?: unknown): void => {
      clearTimeout(drainTimer);
      body.drop();
      reject(
        new RelayError("invalid_argument", "body: the connection broke before it was complete", { cause }),
      );
    };
    const tooLarge = (): void => {
      clearTimeout(drainTimer);
      reject(
        new RelayError("too_large", `body: at most ${bytesMax} bytes`, { details: { limit: bytesMax } }),
      );
    };
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (!isOver()) {
        body.add(chunk);
        return;
      }
      body.drop();
      drainTimer ??= setTimeout(tooLarge, LIMITS.drainMsMax);
      if (bytes > LIMITS.drainBytesMax) tooLarge();
    });
    stream.on("end", () => {
      if (isOver()) return tooLarge();
      const whole = body.finish();
      if (whole === undefined) broken();
      else resolve(whole);
    });
    // One that has broken already says so no more.
    if (stream.destroyed) broken(stream.errored);
    stream.on("error", broken);
  });
}

/** What a body says; its bytes are given back. */
export function jsonOfBody(body: Piece): unknown {
  try {
    return parseJson(body.bytes);
  } finally {
    body.giveBack();
  }
}

/** `what` is how errors name it. */
export function parseJson(bytes: Buffer, what = "body"): unknown {
  if (!isUtf8(bytes)) throw new RelayError("invalid_argument", `${what}: is not valid UTF-8`);
  // Of no text at all there is nothing to be made.
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.slice(0, 200) : "cannot be read";
    throw new RelayError("invalid_argument", `${what}: is not valid JSON: ${why}`, { cause });
  }
}
