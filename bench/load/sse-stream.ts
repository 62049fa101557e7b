import { EventStreamReader } from "./event-stream-reader.ts";
import { getRequest } from "./http-request.ts";
import type { InboxItem } from "./mailbox-item.ts";
import { MailboxStream, type StreamAddress, type StreamListener, streamPath } from "./mailbox-stream.ts";

/** Messages as server-sent events. */
export class SseStream extends MailboxStream {
  readonly #reader = new EventStreamReader();
  #isOpen = false;

  constructor(address: StreamAddress, listener: StreamListener) {
    super(address, getRequest(streamPath("stream", address)), listener);
  }

  override get retryMs(): number {
    return this.#reader.retryMs;
  }

  protected override read(bytes: Buffer, at: number): void {
    const events = this.#reader.push(bytes);
    const { status, isEnded } = this.#reader;
    if (status === 0) return;
    if (status !== 200) throw new Error(`a stream was answered ${status}`);
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.listener.onOpen();
    }
    const last = events.at(-1);
    if (last !== undefined) {
      const items = events.map(({ data }) => JSON.parse(data) as InboxItem);
      this.listener.onMessages(items, last.id, at);
    }
    if (isEnded) throw new Error("the server ended the stream");
  }
}
