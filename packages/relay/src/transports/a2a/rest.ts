import {
  A2A_ERRORS,
  A2aError,
  type A2aDialect,
  type A2aOperation,
  readRestPath,
  RelayError,
  type RestMethod,
  toJsonRpcError,
  toRestError,
  V03_REST_DIALECT,
  V1_DIALECT,
} from "@a2a-relay/protocol";
import { statusOf } from "../http/http-error.ts";
import { type Answer, type Call, JSON_TYPE, type RouteFamily } from "../http/route.ts";
import type { EventStream } from "../http/event-stream.ts";
import { a2aEventStream, extensionHeaders, HttpA2aCall, readHeaders } from "./a2a-exchange.ts";
import type { A2aHandler } from "./a2a-handler.ts";

const A2A_JSON = "application/a2a+json";

/** The operation that a path names, with its parameters. */
interface RestRequest {
  readonly operation: A2aOperation;
  readonly dialect: A2aDialect;
  /** Parameters of the path, as the dialect names them. */
  readonly fixed: Readonly<Record<string, string>>;
}

/** The HTTP+JSON binding below one agent's address: 1.0, and 0.3 below `v1/`. */
export class RestBinding {
  readonly #handler: A2aHandler;

  constructor(handler: A2aHandler) {
    this.#handler = handler;
  }

  async answer(call: Call, method: RestMethod, agentName: string, path: string): Promise<Answer> {
    let dialect: A2aDialect = path.startsWith("v1/") ? V03_REST_DIALECT : V1_DIALECT;
    const contentType = namesA2aJson(call) ? A2A_JSON : JSON_TYPE;
    try {
      const { extensions } = readHeaders(call);
      const request = restRequestOf(method, path);
      ({ dialect } = request);
      const params = dialect.readParams(request.operation, paramsOf(request, call));
      const said = { version: dialect.version, extensions, agentName };
      const reply = await this.#handler.handle(request.operation, params, new HttpA2aCall(call, said));
      const headers = extensionHeaders(extensions);
      if (reply.pages !== undefined) return { events: streamOf(reply.pages, dialect), ...headers };
      const body = JSON.stringify(dialect.writeResult(request.operation, reply.result));
      return { body, contentType, ...headers };
    } catch (reason) {
      const error = RelayError.from(reason);
      // The server logs it when it sends the error.
      if (error.code === "internal" && !(error instanceof A2aError)) throw reason;
      return {
        status: restStatusOf(error),
        body: JSON.stringify(errorBodyOf(error, dialect)),
        contentType,
      };
    }
  }
}

/** Reads the path below an agent's address; an A2A tenant may precede the operation. */
function restRequestOf(method: RestMethod, fullPath: string): RestRequest {
  const path = fullPath.replace(/\/$/, "");
  const isOld = path.startsWith("v1/");
  const asked = isOld ? path.slice("v1/".length) : path;
  const dialect = isOld ? V03_REST_DIALECT : V1_DIALECT;
  const found = readRestPath(method, asked);
  if (found !== undefined) return { operation: found.operation, dialect, fixed: found.params };
  const [, tenant, rest] = /^([^/]+)\/(.+)$/.exec(asked) ?? [];
  const below = rest === undefined ? undefined : readRestPath(method, rest);
  if (below === undefined || tenant === undefined) {
    throw new A2aError("MethodNotFound", `there is no ${method} ${path} in A2A's HTTP+JSON binding`);
  }
  return { operation: below.operation, dialect, fixed: { ...below.params, tenant } };
}

/** Errors before the request is parsed. */
export const REST_FAMILY: RouteFamily = {
  owns: (path) => /^\/agents\/[^/]+\/a2a\/./.test(path),
  errorBody: (error) => toRestError(namedByA2a(error), restStatusOf(error)),
  statusOf: (error) => restStatusOf(error),
  errorSchema: {
    title: "A2aError",
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["code", "status", "message", "details"],
        properties: {
          code: { type: "integer", description: "The HTTP status." },
          status: { type: "string", description: "The status as gRPC names it." },
          message: { type: "string", description: "What was wrong, with which value, and what to do." },
          details: { type: "array", items: { type: "object", additionalProperties: true } },
        },
      },
    },
  },
};

/** A2A names this error; the HTTP status stays 415. */
function namedByA2a(error: RelayError): RelayError {
  if (error.code !== "unsupported_media_type" || error instanceof A2aError) return error;
  return new A2aError("ContentTypeNotSupported", error.message, { cause: error });
}

function restStatusOf(error: RelayError): number {
  return error instanceof A2aError ? A2A_ERRORS[error.a2a].httpStatus : statusOf(error);
}

/** REST of 0.3 uses the error shape of its JSON-RPC. */
function errorBodyOf(error: RelayError, dialect: A2aDialect): object {
  return dialect.version === "1.0"
    ? toRestError(error, restStatusOf(error))
    : toJsonRpcError(error, dialect.version);
}

function namesA2aJson(call: Call): boolean {
  return [call.header("content-type"), call.header("accept")].some(
    (said) => said?.includes(A2A_JSON) === true,
  );
}

/** The path wins over the body, and the body over the query. */
function paramsOf({ fixed, operation }: RestRequest, call: Call): Readonly<Record<string, unknown>> {
  const { body } = call;
  if (body !== undefined && (typeof body !== "object" || body === null || Array.isArray(body))) {
    throw new RelayError("invalid_argument", "body: expected a JSON object");
  }
  return { ...queryOf(operation, call.query as Readonly<Record<string, unknown>>), ...body, ...fixed };
}

/** All values are text; the dialect reads numbers. */
function queryOf(operation: A2aOperation, query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (operation === "send" || operation === "stream") return {};
  return Object.fromEntries(Object.entries(query).filter(([name]) => name !== "A2A-Version"));
}

function streamOf(
  pages: NonNullable<Awaited<ReturnType<A2aHandler["handle"]>>["pages"]>,
  dialect: A2aDialect,
): EventStream {
  return a2aEventStream(pages, {
    event: ({ event, ...position }) => dialect.writeEvent(event, position),
    error: (error) => ({ event: "error", data: JSON.stringify(errorBodyOf(error, dialect)) }),
  });
}
