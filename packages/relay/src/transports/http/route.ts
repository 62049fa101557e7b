import type { AnswerOf, Operation, ParamsOf, RelayError } from "@a2a-relay/protocol";
import type { WebSocket } from "@fastify/websocket";
import type { TSchema } from "typebox";
import type { Principal } from "../../core/access/principal.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { EventStream, StreamHost } from "./event-stream.ts";

export const JSON_TYPE = "application/json; charset=utf-8";

/** A request that is read from the wire and not yet checked, from a caller that is not known. */
export interface OpenCall {
  /** The tenant of the path; undefined on the plain path. */
  readonly tenant: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
  /**
   * Aborted when the client disconnects or the relay stops. Throws for a pipelined request that is not yet first on its
   * connection.
   */
  readonly signal: AbortSignal;
  /** Whether the client disconnected before it had its answer. */
  isGone(): boolean;
  /** The `Last-Event-ID` header: the position at which the reader lost its stream. */
  readonly lastEventId: string | undefined;
  /** Whether the caller accepts server-sent events. */
  readonly wantsEvents: boolean;
  /** By lower-case name; several values are joined by commas. */
  header(name: string): string | undefined;
}

/** A request of an authenticated caller. */
export interface Call extends OpenCall {
  readonly principal: Principal;
}

/** A request of a caller that may have shown a key. */
export interface PublicCall extends OpenCall {
  readonly principal: Principal | undefined;
}

export type Answer<Body = unknown> = ValueAnswer<Body> | TextAnswer;

interface AnswerHead {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A value that is sent as JSON. */
interface ValueAnswer<Body> extends AnswerHead {
  readonly body?: Body;
  /** A stream instead of a body. Without a first event the answer is 204. */
  readonly events?: EventStream;
  readonly contentType?: undefined;
}

/** Text that is sent as it is. */
interface TextAnswer extends AnswerHead {
  readonly body: string;
  readonly contentType: string;
  readonly events?: undefined;
}

/**
 * Routes that share an error shape. It also applies to unauthenticated callers, unreadable bodies and unknown paths.
 */
export interface RouteFamily {
  /** Whether a path belongs to the family, also if no such route exists. */
  readonly owns: (path: string) => boolean;
  readonly errorBody: (error: RelayError) => object;
  /** Absent: the statuses of the native routes. */
  readonly statusOf?: (error: RelayError) => number;
  readonly errorSchema: TSchema;
}

/** One operation with its handler: the server mounts it, the OpenAPI document and the docs page describe it. */
export type Route = OpenRoute | PublicRoute | KeyedRoute | SocketRoute;

interface Served extends Operation {
  /** Absent: errors have the native shape. */
  readonly family?: RouteFamily | undefined;
}

/** Needs no key and checks none. */
interface OpenRoute extends Served {
  readonly open: true;
  readonly socket?: false;
  handle(call: OpenCall): Promise<Answer>;
}

/** Needs no key on the plain path, but checks one that is shown. A tenant's path needs a key. */
interface PublicRoute extends Served {
  readonly open: "unless-keyed";
  readonly socket?: false;
  handle(call: PublicCall): Promise<Answer>;
}

interface KeyedRoute extends Served {
  readonly open?: never;
  readonly socket?: false;
  handle(call: Call): Promise<Answer>;
}

/** Upgrades to a WebSocket. `accept` refuses a caller before the upgrade. */
export interface SocketRoute extends Served {
  readonly open?: never;
  readonly socket: true;
  accept(call: Call): Promise<SocketSession>;
}

/** An accepted caller of a socket route. The server disposes of it when the upgrade fails. */
export interface SocketSession extends Disposable {
  run(socket: WebSocket, host: SocketHost): void;
}

/** What a socket needs of the server. */
export interface SocketHost extends StreamHost {
  readonly gateway: Pick<Gateway, "readmit">;
}

type CallOf<Entry extends Operation> = (Entry extends { readonly open: true }
  ? OpenCall
  : Entry extends { readonly open: "unless-keyed" }
    ? PublicCall
    : Call) & { readonly params: Readonly<Record<ParamsOf<Entry["path"]>, string>> };

/** Serves an operation of the table. */
export function route<Entry extends Operation>(
  operation: Entry,
  handle: (call: CallOf<Entry>) => Promise<Answer<AnswerOf<Entry>>>,
  family?: RouteFamily,
): Route {
  return { ...operation, family, handle };
}

/** Serves an operation that upgrades to a socket. */
export function socketRoute<Entry extends Operation & { readonly open?: never }>(
  operation: Entry,
  accept: (call: CallOf<Entry>) => Promise<SocketSession>,
): SocketRoute {
  return { ...operation, socket: true, accept };
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

/** The query of a stream. `Last-Event-ID` wins over `since`. */
export function resumed({ query, lastEventId }: Call): unknown {
  return lastEventId === undefined ? query : { ...(query as object), since: lastEventId };
}
