import { RelayError } from "@a2a-relay/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../core/access/principal.ts";
import type { OpenCall } from "./route.ts";
import { tenantOfPath } from "./tenant-path.ts";

const EVENT_STREAM = /(?:^|,)\s*text\/event-stream\s*(?:[,;]|$)/i;

/** A request as its route sees it. Most calls never wait, so nothing is set up for those that might. */
export class HttpOpenCall implements OpenCall {
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #waiting: WaitingCalls;

  constructor(request: FastifyRequest, query: unknown, reply: FastifyReply, waiting: WaitingCalls) {
    this.#request = request;
    this.params = request.params as Readonly<Record<string, string>>;
    this.query = query;
    this.body = request.body;
    this.#reply = reply;
    this.#waiting = waiting;
  }

  get tenant(): string | undefined {
    const { originalUrl, url } = this.#request;
    return originalUrl === url ? undefined : tenantOfPath(originalUrl);
  }

  get lastEventId(): string | undefined {
    return this.header("last-event-id");
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join() : value;
  }

  get wantsEvents(): boolean {
    return EVENT_STREAM.test(this.#request.headers.accept ?? "");
  }

  get signal(): AbortSignal {
    // Its answer has no connection yet, so nobody would say when its client has gone.
    if (this.#reply.raw.socket === null) {
      throw new RelayError(
        "invalid_argument",
        "this request came behind another one that is not answered yet; to wait, use a connection of its own",
      );
    }
    return this.#waiting.signalFor(this.#reply);
  }

  isGone(): boolean {
    const { raw } = this.#reply;
    const isLost = raw.destroyed || this.#request.raw.socket.destroyed;
    return isLost && !raw.writableFinished;
  }
}

export class HttpCall<Caller extends Principal | undefined = Principal> extends HttpOpenCall {
  readonly principal: Caller;

  constructor(principal: Caller, ...open: ConstructorParameters<typeof HttpOpenCall>) {
    super(...open);
    this.principal = principal;
  }
}

/** Those who wait: answered at once when the relay stops, forgotten when their client has gone. */
export class WaitingCalls {
  readonly #stopping: AbortSignal;
  readonly #waiting = new Set<AbortController>();

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
    stopping.addEventListener("abort", () => {
      for (const controller of this.#waiting) controller.abort();
    });
  }

  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    if (this.#stopping.aborted) controller.abort();
    this.#waiting.add(controller);
    reply.raw.once("close", () => {
      this.#waiting.delete(controller);
      if (!reply.raw.writableFinished) controller.abort();
    });
    return controller.signal;
  }
}
