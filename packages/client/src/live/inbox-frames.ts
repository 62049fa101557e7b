import type { SocketFrame } from "@a2a-relay/protocol";

/** A step of a mailbox: messages or notices, oldest first, and the cursor to go on from after all of them. */
export type InboxFrame = Extract<SocketFrame, { readonly type: "mail" | "notice" }>;

/** Some pages of the relay's; a WebSocket cannot be told to wait, so what does not fit is asked for again later. */
const FRAMES_MAX = 16;

export interface MailFramesParts {
  /** The cursor after which to begin. */
  readonly since: string | undefined;
  /** A frame had to be let go; so is each that comes before there is room. */
  readonly onBehind: () => void;
  /** All that was kept has been taken: what comes after the cursor has room again. */
  readonly onRoom: () => void;
}

/** Frames that came and were not taken yet. */
export class InboxFrames {
  readonly #parts: MailFramesParts;
  readonly #frames: InboxFrame[] = [];
  #cursor: string | undefined;
  #isBehind = false;
  #isOver = false;
  #error: Error | undefined;
  #wake = (): void => {};

  constructor(parts: MailFramesParts) {
    this.#parts = parts;
    this.#cursor = parts.since;
  }

  /** Behind the last frame that was kept. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  add(frame: InboxFrame): void {
    if (this.#isBehind) return;
    if (this.#frames.length >= FRAMES_MAX) {
      this.#isBehind = true;
      this.#parts.onBehind();
      return;
    }
    this.#frames.push(frame);
    this.#cursor = frame.cursor;
    this.#wake();
  }

  /** No more will come; with an error, because of that. */
  end(error: Error | undefined): void {
    this.#isOver = true;
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<InboxFrame, void> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) {
        yield frame;
        continue;
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return;
      if (this.#isBehind) {
        this.#isBehind = false;
        this.#parts.onRoom();
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
