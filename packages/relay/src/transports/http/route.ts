import type { RelayError } from "@a2a-relay/protocol";
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

export interface Answer {
  readonly status?: number;
  /** A value that is sent as JSON; with a `contentType`, the text to send. */
  readonly body?: unknown;
  /** A stream instead of a body. Without a first event the answer is 204. */
  readonly events?: EventStream;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
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
  /** The name of the error's schema in the OpenAPI document. */
  readonly errorName: string;
  readonly errorSchema: Readonly<Record<string, unknown>>;
}

/** One route as data: the server mounts it, the OpenAPI document and the docs page describe it. */
export type Route = OpenRoute | PublicRoute | KeyedRoute | SocketRoute;

/** Needs no key and checks none. */
interface OpenRoute extends RouteDescription {
  readonly open: true;
  readonly socket?: false;
  handle(call: OpenCall): Promise<Answer>;
}

/** Needs no key on the plain path, but checks one that is shown. A tenant's path needs a key. */
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

/** Upgrades to a WebSocket. `accept` refuses a caller before the upgrade. */
export interface SocketRoute extends RouteDescription {
  readonly open?: false;
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
  /** Whether the answer is a stream of events. */
  readonly streams?: "always" | "on request";
  /** The last parameter takes the rest of the path. */
  readonly isOpenEnded?: boolean;
  /** A GET that takes messages, which no link on another site's page may do. */
  readonly drains?: boolean;
  /** The route may wait for messages, so it has no HEAD. */
  readonly waits?: boolean;
  readonly bodyBytesMax?: number;
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

/** A parameter that the route's own path promises. */
export function param(call: OpenCall, name: string): string {
  return call.params[name] ?? "";
}
