import {
  type HttpClient,
  type OutboundAnswer,
  OutboundFailure,
  type OutboundRequest,
} from "../src/transports/egress/http-client.ts";

const ARRIVAL_MS_MAX = 20_000;

type Receiver = (request: OutboundRequest) => OutboundAnswer | Promise<OutboundAnswer>;

export function anAnswer(status: number, said: Partial<OutboundAnswer> = {}): OutboundAnswer {
  return { status, headers: {}, text: "", ...said };
}

/** All servers outside the relay: they answer as the test says, and keep the requests. */
export class FakeOutside implements HttpClient {
  readonly requests: OutboundRequest[] = [];
  /** Answers 200 by default. */
  receiver: Receiver = () => anAnswer(200);

  readonly #waits = new Set<{ readonly count: number; readonly resolve: () => void }>();

  async request(request: OutboundRequest): Promise<OutboundAnswer> {
    this.requests.push(request);
    for (const wait of this.#waits) {
      if (this.requests.length >= wait.count) wait.resolve();
    }
    return this.receiver(request);
  }

  /** Resolves after so many requests in all. */
  async arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waits.add({ count, resolve });
    const late = new Error(`only ${this.requests.length} of ${count} requests came`);
    const timer = setTimeout(() => reject(late), ARRIVAL_MS_MAX);
    await promise.finally(() => clearTimeout(timer));
  }

  /** A receiver that never answers. The request ends when its signal aborts. */
  readonly hanging: Receiver = async ({ signal }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal?.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    throw new OutboundFailure("aborted", "the request was stopped");
  };

  /** The ids of the messages, in the order of their requests. */
  get ids(): readonly string[] {
    return this.requests.map(({ headers }) => headers["webhook-id"] ?? "");
  }

  get last(): OutboundRequest {
    const last = this.requests.at(-1);
    if (last === undefined) throw new Error("nothing was sent");
    return last;
  }
}
