import { LIMITS } from "@a2a-relay/protocol";
import type { Clock } from "../../core/ports/clock.ts";
import type { HttpClient, OutboundAnswer, OutboundRequest } from "../egress/http-client.ts";

export interface ExchangeSettings {
  /** The `User-Agent` of the relay's requests. */
  readonly userAgent: string;
  /** Time for the whole answer. */
  readonly pushTimeoutMs: number;
}

export type Post = Required<Pick<OutboundRequest, "url" | "headers" | "body">>;

export interface TimedAnswer extends OutboundAnswer {
  /** `Retry-After` in milliseconds; 0 where it is absent or unreadable. */
  readonly retryAfterMs: number;
}

/** A request and its answer, with what all requests of the relay have in common. */
export class OutboundExchange {
  readonly #client: HttpClient;
  readonly #clock: Clock;
  readonly #settings: ExchangeSettings;

  constructor(client: HttpClient, clock: Clock, settings: ExchangeSettings) {
    this.#client = client;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Throws only `OutboundFailure`; any status is an answer. */
  async request(request: Omit<OutboundRequest, "timeoutMs">): Promise<TimedAnswer> {
    const { userAgent, pushTimeoutMs: timeoutMs } = this.#settings;
    const headers = { ...request.headers, "user-agent": userAgent };
    const answer = await this.#client.request({ ...request, headers, timeoutMs });
    return { ...answer, retryAfterMs: readRetryAfter(answer.headers["retry-after"], this.#clock.nowMs()) };
  }
}

/** From seconds or an HTTP date, at most `LIMITS.pushRetryAfterMsMax`. */
export function readRetryAfter(text: string | undefined, nowMs: number): number {
  if (text === undefined) return 0;
  const waitMs = /^\d+$/.test(text.trim()) ? Number(text) * 1_000 : readHttpDate(text) - nowMs;
  return Number.isNaN(waitMs) ? 0 : Math.min(Math.max(waitMs, 0), LIMITS.pushRetryAfterMsMax);
}

/** HTTP dates are in GMT. `Date.parse` alone accepts much more, such as a bare year. */
const HTTP_DATE = /^[A-Z][a-z]+,? .+ (GMT|\d{4})$/;

function readHttpDate(text: string): number {
  const date = text.trim();
  if (!HTTP_DATE.test(date)) return Number.NaN;
  // The asctime form names no zone and means GMT.
  return Date.parse(date.endsWith("GMT") ? date : `${date} GMT`);
}
