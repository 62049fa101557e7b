import type { SocketFrame } from "@a2a-relay/protocol";

/** Messages or notices of a mailbox, oldest first, and the cursor after the last one. */
export type InboxFrame = Extract<SocketFrame, { readonly type: "mail" | "notice" }>;

/** A WebSocket has no backpressure, so frames beyond this are dropped and requested again later. */
const FRAMES_MAX = 16;

export interface InboxFramesParts {
  /** The cursor to start after. */
  readonly since: string | undefined;
  /** The buffer is full: frames are dropped until `onRoom`. */
  readonly onBehind: () => void;
  /** The buffer is empty: request what comes after the cursor. */
  readonly onRoom: () => void;
}

/** A bounded buffer of frames. */
export class InboxFrames {
  readonly #parts: InboxFramesParts;
  readonly #frames: InboxFrame[] = [];
  #cursor: string | undefined;
  #isBehind = false;
  #isOver = false;
  #error: Error | undefined;
  #wake = (): void => {};

  constructor(parts: InboxFramesParts) {
    this.#parts = parts;
    this.#cursor = parts.since;
  }

  /** The cursor after the last buffered frame. */
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

  /** Ends the iteration after the buffered frames, with the error if there is one. */
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
