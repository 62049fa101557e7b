import { postRequest } from "./http-request.ts";

export const AGENTS = 100;
const BODY_BYTES = 1024;

/** Plain prose with some Chinese, so that neither an all-ASCII shortcut nor its absence decides. */
const PROSE =
  "The build of the parser is green again; Zhiwei, please read the notes on the lexer before noon. ";

export const BODY_TEXT = bodyOf(BODY_BYTES);

export function agentId(index: number): string {
  return `agent-${index % AGENTS}@bench`;
}

/** A note of 1 KiB from one agent to the next. */
export function letterTo(recipient: number, more: Readonly<Record<string, unknown>> = {}): object {
  return {
    from: agentId(recipient + 1),
    to: agentId(recipient),
    type: "note",
    subject: "build notes",
    body: BODY_TEXT,
    ...more,
  };
}

/** One send to each agent, ready to be written to a socket. */
export function sendRequests(): readonly Buffer[] {
  return Array.from({ length: AGENTS }, (_, index) => postRequest("/messages", letterTo(index)));
}

/** Sends whose idempotency key is new each time: its digits are overwritten in place. */
export class KeyedSends {
  readonly #requests: readonly Buffer[];
  readonly #offsets: readonly number[];
  #next = 1;

  constructor() {
    const placeholder = "0".repeat(KEY_DIGITS);
    this.#requests = Array.from({ length: AGENTS }, (_, index) =>
      postRequest("/messages", letterTo(index, { idempotency_key: `key-${placeholder}` })),
    );
    this.#offsets = this.#requests.map((request) => request.indexOf(`key-${placeholder}`) + "key-".length);
  }

  next(number: number): Buffer {
    const index = number % AGENTS;
    const template = this.#requests[index] ?? Buffer.alloc(0);
    // A copy, because the bytes of the request before may still wait in the socket.
    const request = Buffer.from(template);
    request.write(String(this.#next).padStart(KEY_DIGITS, "0"), this.#offsets[index] ?? 0, "latin1");
    this.#next += 1;
    return request;
  }
}

const KEY_DIGITS = 12;

function bodyOf(bytesMax: number): string {
  let text = "";
  while (Buffer.byteLength(text) + Buffer.byteLength(PROSE) <= bytesMax) text += PROSE;
  return text.padEnd(text.length + bytesMax - Buffer.byteLength(text), ".");
}
