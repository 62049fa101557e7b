import {
  A2A_DIALECTS,
  A2aError,
  type A2aDialect,
  type A2aOperation,
  dialectOfMethod,
  RelayError,
  toJsonRpcError,
} from "@a2a-relay/protocol";
import { statusOf } from "../http/http-error.ts";
import type { Answer, Call, RouteFamily } from "../http/route.ts";
import type { EventStream } from "../http/event-stream.ts";
import { a2aEventStream, extensionHeaders, HttpA2aCall, readHeaders } from "./a2a-exchange.ts";
import type { A2aHandler } from "./a2a-handler.ts";

type RequestId = string | number | null;

/** The envelope of a JSON-RPC 2.0 request. */
interface RpcRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: unknown;
}

interface Understood {
  readonly dialect: A2aDialect;
  readonly operation: A2aOperation;
}

/** The JSON-RPC binding: one endpoint for all dialects, which differ in the names of their methods. */
export class JsonRpcBinding {
  readonly #handler: A2aHandler;

  constructor(handler: A2aHandler) {
    this.#handler = handler;
  }

  /** `agentName` is undefined for the relay's own endpoint. */
  async answer(call: Call, agentName: string | undefined): Promise<Answer> {
    let id: RequestId = idOf(call.body);
    let dialect: A2aDialect = A2A_DIALECTS["1.0"];
    try {
      const { version, extensions } = readHeaders(call);
      const request = readRequest(call.body);
      ({ id } = request);
      const meant = operationOf(request, version);
      const mayBeOlder = version === undefined && meant.dialect.version === "0.3";
      const asked = mayBeOlder ? await this.#understood(meant, request, call) : meant;
      ({ dialect } = asked);
      const params = dialect.readParams(asked.operation, request.params);
      const a2aCall = new HttpA2aCall(call, { version: dialect.version, extensions, agentName });
      const reply = await this.#handler.handle(asked.operation, params, a2aCall);
      const headers = extensionHeaders(extensions);
      if (reply.pages !== undefined) return { events: streamOf(reply.pages, dialect, id), ...headers };
      return {
        body: { jsonrpc: "2.0", id, result: dialect.writeResult(asked.operation, reply.result) },
        ...headers,
      };
    } catch (reason) {
      const error = RelayError.from(reason);
      // The server logs it when it sends the error.
      if (error.code === "internal" && !(error instanceof A2aError)) throw reason;
      return {
        status: rpcStatusOf(error),
        body: { jsonrpc: "2.0", id, error: toJsonRpcError(error, dialect.version) },
      };
    }
  }

  /** 0.1 shares method names with its successors and has no header. Only its callers choose the ids of their tasks. */
  async #understood(asked: Understood, { method, params }: RpcRequest, call: Call): Promise<Understood> {
    const { id } = params as { readonly id?: unknown };
    if (typeof id !== "string") return asked;
    const dialect = A2A_DIALECTS["0.1"];
    if (dialect.methods[asked.operation] !== method) return asked;
    return (await this.#handler.isNamedByCaller(call.principal, id)) ? { ...asked, dialect } : asked;
  }
}

/** Errors before the request is parsed: unauthenticated callers, unreadable bodies. */
export const JSON_RPC_FAMILY: RouteFamily = {
  owns: (path) => /^(?:\/a2a|\/agents\/[^/]+\/a2a)\/?$/.test(path) && path !== "/a2a/",
  errorBody: (error) => ({ jsonrpc: "2.0", id: null, error: toJsonRpcError(unread(error), "1.0") }),
  statusOf: (error) => rpcStatusOf(error),
  errorSchema: {
    title: "JsonRpcError",
    type: "object",
    required: ["jsonrpc", "id", "error"],
    properties: {
      jsonrpc: { const: "2.0" },
      id: { type: ["string", "number", "null"] },
      error: {
        type: "object",
        required: ["code", "message"],
        properties: {
          code: {
            type: "integer",
            description: "Of JSON-RPC or of A2A; -32000 where neither has a code.",
          },
          message: { type: "string", description: "What was wrong, with which value, and what to do." },
          data: { type: "array", items: { type: "object", additionalProperties: true } },
        },
      },
    },
  },
};

/** A2A has its own names for unreadable bodies. */
function unread(error: RelayError): RelayError {
  if (error instanceof A2aError) return error;
  if (error.code === "invalid_argument") return new A2aError("ParseError", error.message, { cause: error });
  if (error.code === "unsupported_media_type") {
    return new A2aError("ContentTypeNotSupported", error.message, { cause: error });
  }
  return error;
}

/** JSON-RPC errors come with 200; what HTTP covers, such as authentication and limits, keeps its status. */
function rpcStatusOf(error: RelayError): number {
  if (error instanceof A2aError || error.code === "invalid_argument" || error.code === "internal") return 200;
  return statusOf(error);
}

function operationOf({ method, params }: RpcRequest, version: string | undefined): Understood {
  const asked = dialectOfMethod(method, { version });
  if (asked === undefined) {
    throw new A2aError(
      "MethodNotFound",
      `method: "${method.slice(0, 100)}" is none of A2A 1.0, 0.3, 0.2 or 0.1`,
    );
  }
  const isObject = typeof params === "object" && params !== null && !Array.isArray(params);
  if (isObject || (params === undefined && asked.operation === "extended-card")) return asked;
  throw new RelayError("invalid_argument", "params: expected an object with the members of the request");
}

function readRequest(body: unknown): RpcRequest {
  if (body === undefined) throw new A2aError("ParseError", "the request has no body; send JSON-RPC 2.0");
  if (Array.isArray(body)) {
    throw new A2aError("InvalidRequest", "batches are not part of A2A; send one request at a time");
  }
  const { jsonrpc, id, method, params } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0") throw new A2aError("InvalidRequest", 'jsonrpc: expected "2.0"');
  if (typeof method !== "string") throw new A2aError("InvalidRequest", "method: expected a text");
  if (!isId(id))
    throw new A2aError("InvalidRequest", "id: expected a text or a number; A2A has no notifications");
  return { id, method, params };
}

/** The id, also of an invalid request, so that its sender can match the error. */
function idOf(body: unknown): RequestId {
  const id =
    typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>)["id"] : null;
  return isId(id) ? id : null;
}

function isId(id: unknown): id is RequestId {
  return id === null || typeof id === "string" || (typeof id === "number" && Number.isFinite(id));
}

function streamOf(
  pages: NonNullable<Awaited<ReturnType<A2aHandler["handle"]>>["pages"]>,
  dialect: A2aDialect,
  id: RequestId,
): EventStream {
  return a2aEventStream(pages, {
    event: ({ event, ...position }) => ({ jsonrpc: "2.0", id, result: dialect.writeEvent(event, position) }),
    error: (error) => ({
      data: JSON.stringify({ jsonrpc: "2.0", id, error: toJsonRpcError(error, dialect.version) }),
    }),
  });
}
