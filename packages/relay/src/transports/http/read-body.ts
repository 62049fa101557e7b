import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { LIMITS, RelayError } from "@a2a-relay/protocol";

/** The body of a request, whose headers may announce its length. */
type BodyStream = Readable & Partial<Pick<IncomingMessage, "headers">>;

/**
 * Reads a whole body. The relay reads a body over the limit on and discards it, up to `LIMITS.drainBytesMax`, before it
 * refuses: a client that is still sending would otherwise see a reset connection instead of the 413.
 */
export function readBody(stream: BodyStream, bytesMax: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const announced = Number(stream.headers?.["content-length"] ?? 0);
  const chunks: Buffer[] = [];
  let bytes = 0;
  let drainTimer: NodeJS.Timeout | undefined;
  const isOver = (): boolean => Math.max(bytes, announced) > bytesMax;
  const fail = (error: RelayError): void => {
    clearTimeout(drainTimer);
    chunks.length = 0;
    reject(error);
  };
  const broken = (cause?: unknown): void =>
    fail(new RelayError("invalid_argument", "body: the connection broke before it was complete", { cause }));
  const tooLarge = (): void =>
    fail(new RelayError("too_large", `body: at most ${bytesMax} bytes`, { details: { limit: bytesMax } }));
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (!isOver()) {
      chunks.push(chunk);
      return;
    }
    chunks.length = 0;
    drainTimer ??= setTimeout(tooLarge, LIMITS.drainMsMax);
    if (bytes > LIMITS.drainBytesMax) tooLarge();
  });
  stream.on("end", () => (isOver() ? tooLarge() : resolve(Buffer.concat(chunks))));
  // A stream that broke earlier emits no further error.
  if (stream.destroyed) broken(stream.errored);
  stream.on("error", broken);
  return promise;
}

/** Undefined for an empty text. `what` is the name that errors use. */
export function parseJson(bytes: Buffer, what = "body"): unknown {
  if (!isUtf8(bytes)) throw new RelayError("invalid_argument", `${what}: is not valid UTF-8`);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.slice(0, 200) : "cannot be read";
    throw new RelayError("invalid_argument", `${what}: is not valid JSON: ${why}`, { cause });
  }
}
