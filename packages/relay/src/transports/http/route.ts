import type { RelayError } from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import type { Principal } from "../../core/access/principal.ts";
import type { EventStream } from "../streams/event-stream.ts";
import type { SocketSession } from "../streams/socket-session.ts";
import type { Piece } from "./reused-memory.ts";

/** A request, read from the wire and not yet understood, from whomever. */
export interface OpenCall {
  /** The tenant whose path was called; undefined: the plain path. */
  readonly tenant: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
  /**
   * Aborted when the client has gone or the relay is stopping; made when it is first asked for. Who has to wait for
   * the answer before it on its connection is refused one.
   */
  readonly signal: AbortSignal;
  /** Nobody is left to read the answer. */
  isGone(): boolean;
  /** Where a stream broke off, as its reader says in `Last-Event-ID`. */
  readonly lastEventId: string | undefined;
  /** The answer should be a stream of events, where it can be. */
  readonly wantsEvents: boolean;
  /** By lower-case name; of several, all of them, separated by commas. */
  header(name: string): string | undefined;
}

/** A request whose caller is known. */
export interface Call extends OpenCall {
  readonly principal: Principal;
}

/** A request whose caller may be anybody. */
export interface PublicCall extends OpenCall {
  readonly principal: Principal | undefined;
}

export interface Answer {
  readonly status?: number;
  readonly body?: unknown;
  /** The body as JSON text, where it exists already, or as the bytes of it: they are given back once they have left. */
  readonly json?: string | Piece;
  /** An answer that goes on. One without a first event is 204, which tells browsers not to come back. */
  readonly events?: EventStream;
  /** `application/json` unless said otherwise; other types are sent as they are. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Routes whose errors have a shape of their own. It holds for whatever is refused there: strangers,
 * bodies that cannot be read, and paths that do not exist.
 */
export interface RouteFamily {
  /** Whether a path is one of them, or would be if it existed. */
  readonly owns: (path: string) => boolean;
  readonly errorBody: (error: RelayError) => object;
  /** Absent: the same as everywhere. */
  readonly statusOf?: (error: RelayError) => number;
  /** What the OpenAPI document calls the shape, and the shape. */
  readonly errorName: string;
  readonly errorSchema: Readonly<Record<string, unknown>>;
}

/** One route as data: the server mounts it, the OpenAPI document and the docs page describe it. */
export type Route = OpenRoute | PublicRoute | KeyedRoute | SocketRoute;

/** Anybody may call it, with or without a key, so it never learns who did. */
interface OpenRoute extends RouteDescription {
  readonly open: true;
  readonly socket?: false;
  handle(call: OpenCall): Promise<Answer>;
}

/** Anybody may call it on the plain path; a key that is shown is checked, and a tenant's own path needs one. */
interface PublicRoute extends RouteDescription {
  readonly open: "unless-keyed";
  readonly socket?: false;
  handle(call: PublicCall): Promise<Answer>;
}

interface KeyedRoute extends RouteDescription {
  readonly open?: false;
  readonly socket?: false;
  handle(call: Call): Promise<Answer>;
}

/** Becomes a socket. Whoever may not have it is refused before, like any other caller. */
export interface SocketRoute extends RouteDescription {
  readonly open?: false;
  readonly socket: true;
  accept(call: Call): Promise<SocketSession>;
}

interface RouteDescription {
  readonly method: "GET" | "POST" | "DELETE";
  /** With `{name}` for a parameter. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Success statuses and what they mean. */
  readonly answers: Readonly<Record<number, string>>;
  /** Absent: errors have the native shape. */
  readonly family?: RouteFamily;
  /** The answer is a stream of events, for all or for those who ask for one. */
  readonly streams?: "always" | "on request";
  /** The last parameter is all that is left of the path. */
  readonly isOpenEnded?: boolean;
  /** A GET that takes something away, which no link on somebody's page may do. */
  readonly drains?: boolean;
  /** May wait for mail, so it needs to know when nobody waits for the answer any more. */
  readonly waits?: boolean;
  readonly bodyBytesMax?: number;
  /** Its body comes as the bytes of it, because it is not parsed before its turn comes. */
  readonly parsesItself?: boolean;
}

/** What a schema says of one field, as far as the wire and its descriptions need it. */
export interface Property {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Property[];
  readonly items?: Property;
  readonly title?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly description?: string;
  readonly const?: unknown;
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
}

/** The fields of an object schema; none for any other. */
export function fieldsOf(schema: TSchema | undefined): Required<ObjectSchema> {
  const described: ObjectSchema = schema ?? {};
  return { properties: described.properties ?? {}, required: described.required ?? [] };
}

/** The query of a stream. A reader that lost one says where it was, and that counts. */
export function resumed({ query, lastEventId }: Call): unknown {
  return lastEventId === undefined ? query : { ...(query as object), since: lastEventId };
}

/** A parameter that the route's own path promises. */
export function param(call: OpenCall, name: string): string {
  return call.params[name] ?? "";
}
