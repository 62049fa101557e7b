import type { LoopResult } from "./closed-loop.ts";
import { agentId, messageTo } from "./messages.ts";
import type { InboxItem } from "./mailbox-item.ts";
import { type SocketListener, SocketStream } from "./socket-stream.ts";
import { requestFrame } from "./socket-frames.ts";

export const BATCH_MESSAGES = 100;
/** Batches that are sent before the first of them is acknowledged as a whole. */
const BATCHES_IN_FLIGHT = 8;
/** Nothing moves for so long: something is lost. */
const STUCK_MS = 20_000;
const RECIPIENT = 0;
const SEND = "send";

/**
 * Batches of messages over a socket to the agent of a socket, which acknowledges each frame as it arrives. What
 * is under way is limited by what is acknowledged, so that sender and reader go at the same rate.
 */
export class BatchFlow implements SocketListener, Disposable {
  /** Made once: the messages are always the same. */
  readonly #batch = requestFrame(SEND, "send_batch", {
    messages: Array.from({ length: BATCH_MESSAGES }, () => messageTo(RECIPIENT)),
  });
  readonly #opening = Promise.withResolvers<void>();
  readonly #sockets = new DisposableStack();
  #reader: SocketStream | undefined;
  #sender: SocketStream | undefined;
  #done: PromiseWithResolvers<void> | undefined;
  #toOpen = 0;
  #sent = 0;
  #acknowledged = 0;
  #endsAt = 0;
  #frames = 0;

  /** Over one socket for each end, or over one for both. */
  static async open(port: number, sockets: 1 | 2): Promise<BatchFlow> {
    const flow = new BatchFlow();
    flow.#toOpen = sockets;
    flow.#reader = flow.#connect(port, RECIPIENT);
    flow.#sender = sockets === 1 ? flow.#reader : flow.#connect(port, RECIPIENT + 1);
    await flow.#opening.promise;
    return flow;
  }

  /** Resolves when all that was sent within the time is acknowledged. */
  async run(durationMs: number): Promise<LoopResult> {
    const start = performance.now();
    const before = this.#acknowledged;
    const done = Promise.withResolvers<void>();
    this.#done = done;
    this.#endsAt = start + durationMs;
    const stuck = setTimeout(() => this.#fail(this.#whereStuck()), durationMs + STUCK_MS);
    this.#sendMore();
    await done.promise;
    clearTimeout(stuck);
    return { cycles: this.#acknowledged - before, elapsedMs: performance.now() - start };
  }

  onOpen(): void {
    this.#toOpen -= 1;
    if (this.#toOpen === 0) this.#opening.resolve();
  }

  onMessages(items: readonly InboxItem[]): void {
    this.#frames += 1;
    this.#reader?.request("ack", "ack", { message_ids: items.map(({ message_id }) => message_id) });
  }

  onAnswer(id: string, body: unknown): void {
    if (id === SEND) {
      const { results } = body as { readonly results: readonly { readonly status: number }[] };
      const accepted = results.filter(({ status }) => status === 201).length;
      if (accepted !== BATCH_MESSAGES)
        this.#fail(new Error(`only ${accepted} of ${BATCH_MESSAGES} messages of a batch were accepted`));
      return;
    }
    this.#acknowledged += (body as { readonly acknowledged: number }).acknowledged;
    this.#sendMore();
  }

  onClose(reason: Error): void {
    this.#fail(reason);
  }

  [Symbol.dispose](): void {
    this.#sockets.dispose();
  }

  #connect(port: number, agent: number): SocketStream {
    const address = { port, agent: agentId(agent), since: undefined, localAddress: undefined };
    return this.#sockets.use(new SocketStream(address, this));
  }

  #sendMore(): void {
    const roomFor = this.#acknowledged + BATCHES_IN_FLIGHT * BATCH_MESSAGES;
    while (performance.now() < this.#endsAt && this.#sent + BATCH_MESSAGES <= roomFor) {
      this.#sent += BATCH_MESSAGES;
      this.#sender?.send(this.#batch);
    }
    if (this.#acknowledged === this.#sent) this.#done?.resolve();
  }

  #whereStuck(): Error {
    const far = `of ${this.#sent} messages ${this.#acknowledged} were acknowledged, in ${this.#frames} frames`;
    return new Error(`messages got stuck: ${far}`);
  }

  #fail(reason: Error): void {
    this.#opening.reject(reason);
    this.#done?.reject(reason);
  }
}
