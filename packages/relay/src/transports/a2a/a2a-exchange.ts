import {
  A2aError,
  type A2aVersion,
  parseA2aVersion,
  RELAY_EXTENSIONS,
  RelayError,
} from "@a2a-relay/protocol";
import type { A2aEvent, A2aPage } from "../../core/a2a/a2a-streams.ts";
import { type EventStream, eventStream, type ServerSentEvent } from "../http/event-stream.ts";
import type { Call, OpenCall } from "../http/route.ts";
import type { A2aCall } from "./a2a-handler.ts";

/** The A2A headers of a request, the same over JSON-RPC and REST. */
export interface A2aHeaders {
  /** Undefined when the request names none. */
  readonly version: A2aVersion | undefined;
  readonly extensions: readonly string[];
}

/** Refuses unknown versions before the request is parsed. */
export function readHeaders(call: OpenCall): A2aHeaders {
  const said = call.header("a2a-version") ?? queryMember(call, "A2A-Version");
  const version = parseA2aVersion(said);
  if (version === "unknown") {
    throw new A2aError(
      "VersionNotSupported",
      `A2A-Version: ${said} is not served here; 1.0, 0.3, 0.2 and 0.1 are`,
    );
  }
  const named = call.header("a2a-extensions") ?? call.header("x-a2a-extensions") ?? "";
  const extensions = named
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
  return { version, extensions };
}

/** Names the extensions that the relay applies; the others are for the agent. */
export function extensionHeaders(named: readonly string[]): {
  readonly headers?: Readonly<Record<string, string>>;
} {
  const active = named.filter((uri) => (RELAY_EXTENSIONS as readonly string[]).includes(uri));
  return active.length === 0 ? {} : { headers: { "a2a-extensions": active.join(", ") } };
}

/** Reads the signal only on demand: it throws for a pipelined request. */
export class HttpA2aCall implements A2aCall {
  readonly version: A2aVersion;
  readonly extensions: readonly string[];
  readonly agentName: string | undefined;
  readonly #call: Call;

  constructor(
    call: Call,
    exchange: {
      readonly version: A2aVersion;
      readonly extensions: readonly string[];
      readonly agentName: string | undefined;
    },
  ) {
    this.#call = call;
    this.version = exchange.version;
    this.extensions = exchange.extensions;
    this.agentName = exchange.agentName;
  }

  get principal(): A2aCall["principal"] {
    return this.#call.principal;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get lastEventId(): string | undefined {
    return this.#call.lastEventId;
  }

  get idempotencyKey(): string | undefined {
    return this.#call.header("idempotency-key");
  }
}

function queryMember({ query }: OpenCall, name: string): string | undefined {
  const value = (query as Readonly<Record<string, unknown>>)[name];
  return typeof value === "string" ? value : undefined;
}

/** How a binding writes the events of a stream. */
export interface A2aEventWriter {
  event(event: A2aEvent): unknown;
  error(error: RelayError): Pick<ServerSentEvent, "event" | "data">;
}

/**
 * Ids are the numbers of the steps. An error after the first event is sent in the stream, with the id of the event
 * before it, so that a reader that resumes misses nothing.
 */
export function a2aEventStream(pages: AsyncIterable<A2aPage>, writer: A2aEventWriter): EventStream {
  let lastId: string | undefined;
  let isOver = false;
  const stream = eventStream("a2a", pages, ({ events }) =>
    events.map((event) => ({ id: String(event.n), data: JSON.stringify(writer.event(event)) })),
  );
  return {
    kind: stream.kind,
    next: async () => {
      if (isOver) return undefined;
      try {
        const events = await stream.next();
        lastId = events?.at(-1)?.id ?? lastId;
        return events;
      } catch (reason) {
        if (lastId === undefined || !(RelayError.from(reason) instanceof A2aError)) throw reason;
        isOver = true;
        return [{ id: lastId, ...writer.error(RelayError.from(reason)) }];
      }
    },
  };
}
