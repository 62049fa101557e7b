import {
  type Outbound,
  type OutboundAnswer,
  OutboundFailure,
  type OutboundRequest,
} from "../src/core/ports/outbound-http.ts";

const ARRIVAL_MS_MAX = 20_000;

type Receiver = (request: OutboundRequest) => OutboundAnswer | Promise<OutboundAnswer>;

export function anAnswer(status: number, said: Partial<OutboundAnswer> = {}): OutboundAnswer {
  return { status, headers: {}, text: "", ...said };
}

/** Everybody else's servers: they answer as the test says, and what they were sent can be read back. */
export class FakeOutside implements Outbound {
  readonly requests: OutboundRequest[] = [];
  /** 200 unless a test says otherwise. */
  receiver: Receiver = () => anAnswer(200);

  readonly #waiting = new Set<{ readonly count: number; readonly resolve: () => void }>();

  async request(request: OutboundRequest): Promise<OutboundAnswer> {
    this.requests.push(request);
    for (const wait of this.#waiting) {
      if (this.requests.length >= wait.count) wait.resolve();
    }
    return this.receiver(request);
  }

  /** Ends once there were so many requests in all. */
  async arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add({ count, resolve });
    const late = new Error(`only ${this.requests.length} of ${count} requests came`);
    const timer = setTimeout(() => reject(late), ARRIVAL_MS_MAX);
    await promise.finally(() => clearTimeout(timer));
  }

  /** A receiver that takes what it is sent and never answers; it is only let go by whoever stops waiting. */
  readonly hanging: Receiver = async ({ signal }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal?.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    throw new OutboundFailure("aborted", "the request was stopped");
  };

  /** Whose messages came, in the order they came. */
  get ids(): readonly string[] {
    return this.requests.map(({ headers }) => headers["webhook-id"] ?? "");
  }

  get last(): OutboundRequest {
    const last = this.requests.at(-1);
    if (last === undefined) throw new Error("nothing was sent");
    return last;
  }
}
