import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { LIMITS, RelayError } from "@a2a-relay/protocol";

/**
 * Reads a body and makes of it what `parse` does. A body over the limit is read on and thrown away, up to a bound,
 * before the refusal: a client that is still sending would otherwise see a reset connection instead of the 413.
 */
export function readBody<Body>(
  stream: Readable,
  bytesMax: number,
  parse: (bytes: Buffer) => Body,
): Promise<Body> {
  return new Promise((resolve, reject) => {
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
      try {
        resolve(parse(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)));
      } catch (reason) {
        reject(reason);
      }
    });
    stream.on("error", (cause) => {
      clearTimeout(drainTimer);
      reject(
        new RelayError("invalid_argument", "body: the connection broke before it was complete", { cause }),
      );
    });
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
