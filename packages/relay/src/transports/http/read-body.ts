import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { LIMITS, RelayError } from "@a2a-relay/protocol";

/** A body to be read; of a request it is known how long it is. */
type BodyStream = Readable & Partial<Pick<IncomingMessage, "headers">>;

/**
 * Reads a body and makes of it what `parse` does. A body over the limit is read on and thrown away, up to a bound,
 * before the refusal: a client that is still sending would otherwise see a reset connection instead of the 413.
 */
export async function readBody<Body>(
  stream: BodyStream,
  bytesMax: number,
  parse: (bytes: Buffer) => Body,
): Promise<Body> {
  // What came with the headers is there then, and mostly that is all of it.
  await Promise.resolve();
  const bytes = readAtOnce(stream, bytesMax) ?? (await readToEnd(stream, bytesMax));
  return parse(bytes);
}

/** A body that is there as a whole, without the events by which a stream tells of its parts and its end. */
function readAtOnce(stream: BodyStream, bytesMax: number): Buffer | undefined {
  const bytes = stream.readableLength;
  const isWhole = bytes > 0 && bytes === Number(stream.headers?.["content-length"]);
  return isWhole && bytes <= bytesMax ? (stream.read() as Buffer) : undefined;
}

/** For requests that are answered: of a body that was read at once, its end has still to be taken notice of. */
export function endBody(request: IncomingMessage): void {
  if (request.readableDidRead && !request.readableEnded) request.resume();
}

function readToEnd(stream: Readable, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const broken = (cause: unknown): void => {
      clearTimeout(drainTimer);
      reject(
        new RelayError("invalid_argument", "body: the connection broke before it was complete", { cause }),
      );
    };
    const chunks: Buffer[] = [];
    let bytes = 0;
    let drainTimer: NodeJS.Timeout | undefined;
    const tooLarge = (): void => {
      clearTimeout(drainTimer);
      reject(
        new RelayError("too_large", `body: at most ${bytesMax} bytes`, { details: { limit: bytesMax } }),
      );
    };
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      drainTimer ??= setTimeout(tooLarge, LIMITS.drainMsMax);
      if (bytes > LIMITS.drainBytesMax) tooLarge();
    });
    stream.on("end", () => {
      if (bytes > bytesMax) return tooLarge();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    });
    // One that has broken already says so no more.
    if (stream.destroyed) broken(stream.errored);
    stream.on("error", broken);
  });
}

/** `what` is how errors name it. */
export function parseJson(bytes: Buffer, what = "body"): unknown {
  return parseJsonText(textOf(bytes, what), what);
}

export function textOf(bytes: Buffer, what = "body"): string {
  if (!isUtf8(bytes)) throw new RelayError("invalid_argument", `${what}: is not valid UTF-8`);
  return bytes.toString("utf8");
}

/** Of no text at all there is nothing to be made. */
export function parseJsonText(text: string, what = "body"): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.slice(0, 200) : "cannot be read";
    throw new RelayError("invalid_argument", `${what}: is not valid JSON: ${why}`, { cause });
  }
}
