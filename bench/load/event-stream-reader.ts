export interface StreamEvent {
  readonly id: string;
  readonly data: string;
}

const EMPTY: Buffer = Buffer.alloc(0);
const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const EVENT_END = Buffer.from("\n\n");
const STATUS_START = "HTTP/1.1 ".length;

/**
 * Takes server-sent events out of the bytes of an HTTP answer, in pieces of any size. It reads what the relay
 * writes and no more: a chunked body, and events of `id`, `event` and one line of `data`.
 */
export class EventStreamReader {
  #status = 0;
  #retryMs = 0;
  #isEnded = false;
  /** What of the answer is not taken apart yet. */
  #rest = EMPTY;
  /** What of the body is not a whole event yet. */
  #body = EMPTY;

  /** Zero until the head is complete. */
  get status(): number {
    return this.#status;
  }

  /** How long the server asks to wait before coming back. */
  get retryMs(): number {
    return this.#retryMs;
  }

  /** The answer is complete, although its connection may stay open. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The events that end within this piece. */
  push(bytes: Buffer): readonly StreamEvent[] {
    this.#rest = joined(this.#rest, bytes);
    if (this.#status === 0) this.#readHead();
    if (this.#status !== 200) return [];
    for (let chunk = this.#nextChunk(); chunk !== undefined; chunk = this.#nextChunk()) {
      this.#isEnded ||= chunk.length === 0;
      this.#body = joined(this.#body, chunk);
    }
    return this.#takeEvents();
  }

  #readHead(): void {
    const end = this.#rest.indexOf(HEAD_END);
    if (end === -1) return;
    this.#status = Number(this.#rest.toString("latin1", STATUS_START, STATUS_START + 3));
    this.#rest = after(this.#rest, end + HEAD_END.length);
  }

  /** Undefined until it is complete. */
  #nextChunk(): Buffer | undefined {
    const sizeEnd = this.#rest.indexOf(LINE_END);
    if (sizeEnd === -1) return undefined;
    const start = sizeEnd + LINE_END.length;
    const size = Number.parseInt(this.#rest.toString("latin1", 0, sizeEnd), 16);
    if (Number.isNaN(size)) throw new Error("the server's answer does not come in chunks");
    const end = start + size;
    if (this.#rest.length < end + LINE_END.length) return undefined;
    const chunk = this.#rest.subarray(start, end);
    this.#rest = after(this.#rest, end + LINE_END.length);
    return chunk;
  }

  #takeEvents(): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    let start = 0;
    for (;;) {
      const end = this.#body.indexOf(EVENT_END, start);
      if (end === -1) break;
      const event = this.#readEvent(this.#body.toString("utf8", start, end));
      if (event !== undefined) events.push(event);
      start = end + EVENT_END.length;
    }
    this.#body = after(this.#body, start);
    return events;
  }

  /** Undefined for what is no event: a comment, or the time to wait. */
  #readEvent(text: string): StreamEvent | undefined {
    const fields = new Map(text.split("\n").map(fieldOf));
    this.#retryMs = Number(fields.get("retry") ?? this.#retryMs);
    const data = fields.get("data");
    return data === undefined ? undefined : { id: fields.get("id") ?? "", data };
  }
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(": ");
  return [line.slice(0, colon), line.slice(colon + 2)];
}

function joined(rest: Buffer, more: Buffer): Buffer {
  if (rest.length === 0) return more;
  return more.length === 0 ? rest : Buffer.concat([rest, more]);
}

/** Nothing, where nothing is left: an empty part of a piece would keep the whole piece in memory. */
function after(bytes: Buffer, start: number): Buffer {
  return start === bytes.length ? EMPTY : bytes.subarray(start);
}
