import { a2aRequest, postRequest } from "./http-request.ts";

export const AGENTS = 100;
const BODY_BYTES = 1024;
const KEY_DIGITS = 12;

const ENGLISH = "The build of the parser is green again; please read the notes on the lexer before noon. ";
/** Outside of Latin-1, JavaScript keeps a text in two bytes a character, and every step with it costs more. */
const CHINESE = "解析器的构建已恢复正常，知微，请在中午之前阅读词法分析器的说明。";

export type Language = "english" | "chinese";

const BODIES: Readonly<Record<Language, string>> = {
  english: bodyOf(ENGLISH),
  chinese: bodyOf(CHINESE),
};

export function agentId(index: number): string {
  return `agent-${index % AGENTS}@bench`;
}

/** A note of 1 KiB from one agent to the next. */
export function messageTo(recipient: number, more: Readonly<Record<string, unknown>> = {}): object {
  return {
    from: agentId(recipient + 1),
    to: agentId(recipient),
    type: "note",
    subject: "build notes",
    body: BODIES.english,
    ...more,
  };
}

/** One send to each agent, ready to be written to a socket. */
export function sendRequests(language: Language = "english"): readonly Buffer[] {
  return Array.from({ length: AGENTS }, (_, index) =>
    postRequest("/messages", messageTo(index, { body: BODIES[language] })),
  );
}

/** The same to each agent as a call of A2A, at its own address or at the one that `pathOf` gives. */
export function a2aSends(pathOf: (agent: string) => string): readonly Buffer[] {
  return Array.from({ length: AGENTS }, (_, index) => {
    const message = { messageId: `bench-${index}`, role: "ROLE_USER", parts: [{ text: BODIES.english }] };
    const params = { message, configuration: { returnImmediately: true } };
    return a2aRequest(pathOf(agentId(index)), { jsonrpc: "2.0", id: index, method: "SendMessage", params });
  });
}

/** Sends whose idempotency key is new each time: its digits are overwritten in the buffer. */
export class KeyedSends {
  readonly #requests: readonly Buffer[];
  readonly #offsets: readonly number[];
  #next = 1;

  constructor() {
    const placeholder = "0".repeat(KEY_DIGITS);
    this.#requests = Array.from({ length: AGENTS }, (_, index) =>
      postRequest("/messages", messageTo(index, { idempotency_key: `key-${placeholder}` })),
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

/** The sentence again and again, filled up to the byte. */
function bodyOf(sentence: string): string {
  const text = sentence.repeat(Math.floor(BODY_BYTES / Buffer.byteLength(sentence)));
  return text.padEnd(text.length + BODY_BYTES - Buffer.byteLength(text), ".");
}
