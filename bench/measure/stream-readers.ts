import type { ServerProcess } from "../contestants/server-process.ts";
import { agentId } from "../load/messages.ts";
import type { StreamOpener } from "../load/mailbox-stream.ts";
import type { Audience, OnMessages } from "./paced-sends.ts";

export const READERS = 20;

/** One open stream for each of several agents; they stay open from round to round. */
export class StreamReaders implements Audience, Disposable {
  readonly agents: readonly number[];
  readonly #streams = new DisposableStack();
  #onMessages: OnMessages | undefined;

  private constructor(firstAgent: number) {
    this.agents = Array.from({ length: READERS }, (_, index) => firstAgent + index);
  }

  static async open(relay: ServerProcess, open: StreamOpener, firstAgent: number): Promise<StreamReaders> {
    const readers = new StreamReaders(firstAgent);
    await Promise.all(readers.agents.map((agent) => readers.#open(relay, open, agentId(agent))));
    return readers;
  }

  begin(onMessages: OnMessages): void {
    this.#onMessages = onMessages;
  }

  async end(): Promise<void> {
    this.#onMessages = undefined;
  }

  [Symbol.dispose](): void {
    this.#streams.dispose();
  }

  /** A stream that ends later is not opened again: its messages are missed, and the round says so. */
  #open({ port }: ServerProcess, open: StreamOpener, agent: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const address = { port, agent, since: undefined, localAddress: undefined };
      const stream = open(address, {
        onOpen: resolve,
        onMessages: (items, _cursor, at) => this.#onMessages?.(items, at),
        onClose: reject,
      });
      this.#streams.use(stream);
    });
  }
}
