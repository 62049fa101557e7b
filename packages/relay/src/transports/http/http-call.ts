import { RelayError } from "@a2a-relay/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { TSchema } from "typebox";
import type { Principal } from "../../core/access/principal.ts";
import { fieldsOf, type OpenCall, type Property } from "./route.ts";

const EVENT_STREAM = /(?:^|,)\s*text\/event-stream\s*(?:[,;]|$)/i;
const TENANT_PATH = /^\/t\/([^/?#]+)(?=[/?#]|$)/;

/** A request as its route sees it. */
export class HttpCall<Caller extends Principal | undefined> implements OpenCall {
  readonly principal: Caller;
  readonly query: unknown;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #signals: CallSignals;

  constructor(principal: Caller, request: FastifyRequest, reply: FastifyReply, signals: CallSignals) {
    this.principal = principal;
    this.query = readQuery(request.route?.query, request.query);
    this.#request = request;
    this.#reply = reply;
    this.#signals = signals;
  }

  get params(): Readonly<Record<string, string>> {
    return this.#request.params as Readonly<Record<string, string>>;
  }

  get body(): unknown {
    return this.#request.body;
  }

  get tenant(): string | undefined {
    return tenantOfPath(this.#request.originalUrl);
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
    // The answer to a pipelined request has no connection yet, so its end would go unnoticed.
    if (this.#reply.raw.socket === null) {
      throw new RelayError(
        "invalid_argument",
        "this request came behind another one that is not answered yet; to wait, use a connection of its own",
      );
    }
    return this.#signals.signalFor(this.#reply);
  }

  isGone(): boolean {
    const { raw } = this.#reply;
    const isLost = raw.destroyed || this.#request.raw.socket.destroyed;
    return isLost && !raw.writableFinished;
  }
}

/** The signals of calls that wait. They abort when the relay stops or the client disconnects. */
export class CallSignals {
  readonly #stopping: AbortSignal;
  readonly #open = new Set<AbortController>();

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
    stopping.addEventListener("abort", () => {
      for (const controller of this.#open) controller.abort();
    });
  }

  signalFor(reply: FastifyReply): AbortSignal {
    const controller = new AbortController();
    if (this.#stopping.aborted) controller.abort();
    this.#open.add(controller);
    reply.raw.once("close", () => {
      this.#open.delete(controller);
      if (!reply.raw.writableFinished) controller.abort();
    });
    return controller.signal;
  }
}

/**
 * Reads numbers and truth values where the schema has them, because a query string carries only text. Other values stay
 * text, and the core says what is wrong with them.
 */
export function readQuery(schema: TSchema | undefined, raw: unknown): unknown {
  const { properties } = fieldsOf(schema);
  const query: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(raw as Record<string, unknown>)) {
    query[name] = readValue(properties[name], value);
  }
  return query;
}

function readValue({ type, maximum }: Property = {}, value: unknown): unknown {
  if (typeof value !== "string") return value;
  // An unbounded number may be as large as 64 bits hold.
  const number = maximum === undefined ? /^-?\d{1,20}$/ : /^-?\d{1,16}$/;
  if (type === "integer" && number.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "1")) return true;
  if (type === "boolean" && (value === "false" || value === "0")) return false;
  return value;
}

/** The path without its `/t/{tenant}`. */
export function withoutTenant(url: string): string {
  if (tenantOfPath(url) === undefined) return url;
  const rest = url.replace(TENANT_PATH, "");
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** The tenant in `/t/{tenant}`; undefined when the path has none, or one that cannot be decoded. */
export function tenantOfPath(url: string): string | undefined {
  const name = TENANT_PATH.exec(url)?.[1];
  if (name === undefined) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}
