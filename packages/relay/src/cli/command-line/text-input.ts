import { LIMITS, RelayError } from "@a2a-relay/protocol";
import type { CliIo } from "../terminal/cli-io.ts";

/** The text of an option; `-` reads it from stdin, without the line break that ends its last line. */
export async function readTextOption(value: string, io: CliIo): Promise<string> {
  if (value !== "-") return value;
  const bytes = await readStdin(io, LIMITS.bodyBytesMax, "the most a message may have");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes).replace(/\r?\n$/, "");
  } catch (cause) {
    throw new RelayError("invalid_argument", "stdin is not UTF-8 text; send files as a reference instead", {
      cause,
    });
  }
}

/** All that comes on stdin, byte for byte. `why` says what the bound is. */
export async function readStdin(io: CliIo, bytesMax: number, why: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const stop = (): void => void io.stdin.destroy(new Error("interrupted"));
  io.signal.addEventListener("abort", stop, { once: true });
  try {
    io.signal.throwIfAborted();
    for await (const chunk of io.stdin as AsyncIterable<Buffer | string>) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      size += bytes.length;
      if (size > bytesMax) {
        throw new RelayError("too_large", `stdin holds more than ${bytesMax} bytes, ${why}`);
      }
      chunks.push(bytes);
    }
  } finally {
    io.signal.removeEventListener("abort", stop);
  }
  return Buffer.concat(chunks);
}
