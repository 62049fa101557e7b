import { RelayError } from "@a2a-relay/protocol";

export interface ServerSentEvent {
  /** Its name; `message` where the server gave none. */
  readonly event: string;
  readonly data: string;
  /** The last id that was given, with this event or before it. */
  readonly id: string;
}

const LINE_END = /\r\n|\r|\n/g;

/** Parses the text of an event stream, in chunks of any size. */
export class SseParser {
  readonly #charsMax: number;
  #line = "";
  /** The text ended with CR: an LF that comes next belongs to the same line end. */
  #afterCr = false;
  #event = "";
  #data: string[] = [];
  #dataChars = 0;
  #id = "";
  #retryMs: number | undefined;

  /** `charsMax`: no event is longer, nor a line of one; else a stream could fill the memory. */
  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** How long the server asks to wait before coming back. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** The events that end within this piece. */
  push(text: string): readonly ServerSentEvent[] {
    if (text === "") return [];
    const events: ServerSentEvent[] = [];
    let start = this.#afterCr && text.startsWith("\n") ? 1 : 0;
    this.#afterCr = text.endsWith("\r");
    LINE_END.lastIndex = start;
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      this.#grow(text.slice(start, end.index));
      start = LINE_END.lastIndex;
      const event = this.#endLine();
      if (event !== undefined) events.push(event);
    }
    this.#grow(text.slice(start));
    return events;
  }

  #grow(piece: string): void {
    this.#line += piece;
    if (this.#line.length + this.#dataChars <= this.#charsMax) return;
    const what = `an event of more than ${this.#charsMax} characters`;
    throw new RelayError("too_large", `the stream holds ${what}; is it really one of an a2a-relay?`);
  }

  #endLine(): ServerSentEvent | undefined {
    const line = this.#line;
    this.#line = "";
    if (line === "") return this.#endEvent();
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    this.#field(name, value);
    return undefined;
  }

  /** A comment is a field without a name, and like other unknown ones it says nothing. */
  #field(name: string, value: string): void {
    if (name === "data") {
      this.#data.push(value);
      this.#dataChars += value.length + 1;
    } else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d{1,9}$/.test(value)) this.#retryMs = Number(value);
  }

  #endEvent(): ServerSentEvent | undefined {
    const event = this.#event === "" ? "message" : this.#event;
    const data = this.#data;
    this.#event = "";
    this.#data = [];
    this.#dataChars = 0;
    return data.length === 0 ? undefined : { event, data: data.join("\n"), id: this.#id };
  }
}
