import type { SocketFrame } from "@a2a-relay/protocol";

/** A step of a mailbox: letters or notices, oldest first, and the cursor to go on from after all of them. */
export type MailFrame = Extract<SocketFrame, { readonly type: "mail" | "notice" }>;

/** Some pages of the relay's; a WebSocket cannot be told to wait, so what does not fit is asked for again later. */
const FRAMES_MAX = 16;

/** Frames that came and were not taken yet. */
export class MailFrames {
  readonly #onRoom: () => void;
  readonly #frames: MailFrame[] = [];
  #cursor: string | undefined;
  #isBehind = false;
  #isOver = false;
  #error: Error | undefined;
  #wake = (): void => {};

  /** `onRoom` is called when frames had to be let go and the rest has been taken. */
  constructor(since: string | undefined, onRoom: () => void) {
    this.#cursor = since;
    this.#onRoom = onRoom;
  }

  /** Behind the last frame that was kept. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  add(frame: MailFrame): void {
    if (this.#isBehind || this.#frames.length >= FRAMES_MAX) {
      this.#isBehind = true;
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

  async *[Symbol.asyncIterator](): AsyncGenerator<MailFrame, void> {
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
        this.#onRoom();
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
