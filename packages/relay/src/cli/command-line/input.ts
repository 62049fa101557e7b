import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { InvalidArgumentError } from "commander";
import type { CliIo } from "../terminal/output.ts";

/** The text of an option; `-` reads it from stdin, without the last line break. */
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

/** All bytes of stdin. `why` explains the limit in the error. */
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

/** A file error is a mistake on the command line; other errors pass through. */
export function unusableFile(
  option: string,
  path: string,
  verb: "read" | "written",
): (reason: unknown) => never {
  return (reason) => {
    if (!(reason instanceof Error) || !("syscall" in reason)) throw reason;
    throw new InvalidArgumentError(`${option} ${path} cannot be ${verb}: ${reason.message}`);
  };
}

const SIGNED = ["id", "timestamp", "signature"] as const;

interface WebhookHeaderOptions {
  /** The text of a file: header lines, or a JSON object. */
  readonly head?: string | undefined;
  readonly id?: string | undefined;
  readonly timestamp?: string | undefined;
  readonly signature?: string | undefined;
}

/** The three headers of a Standard Webhooks signature, from a file and from options; options win. */
export function webhookHeaders(options: WebhookHeaderOptions): Readonly<Record<string, string>> {
  const headers = options.head === undefined ? {} : parseHead(options.head);
  for (const name of SIGNED) {
    const given = options[name];
    if (given !== undefined) headers[`webhook-${name}`] = given;
  }
  const missing = SIGNED.filter((name) => headers[`webhook-${name}`] === undefined);
  if (missing.length === 0) return headers;
  const names = missing.map((name) => `webhook-${name}`).join(", ");
  throw new InvalidArgumentError(
    `${names}: not given; give the request's headers with --headers, or each with --id, --timestamp and --signature`,
  );
}

export function parseHead(text: string): Record<string, string> {
  return text.trimStart().startsWith("{") ? parseJsonHeaders(text) : parseHeaderLines(text);
}

/** As `curl` and proxies write them. Lines without a name, such as a request line, are skipped. */
function parseHeaderLines(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const match = /^([\w-]+):\s*(.*?)\s*$/.exec(line);
    if (match?.[1] !== undefined) headers[match[1].toLowerCase()] = match[2] ?? "";
  }
  return headers;
}

function parseJsonHeaders(text: string): Record<string, string> {
  try {
    const object = JSON.parse(text) as Record<string, unknown>;
    return Object.fromEntries(
      Object.entries(object).map(([name, value]) => [name.toLowerCase(), String(value)]),
    );
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`--headers: begins like JSON and is none: ${why}`);
  }
}
