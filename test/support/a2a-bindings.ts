import { A2AService } from "@a2a-js/sdk/server/grpc";
import {
  GetExtendedAgentCardRequest,
  GetTaskRequest,
  CancelTaskRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type A2aOperation, V1_DIALECT } from "@a2a-relay/protocol";
import { type ChannelOptions, Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { A2aRelay } from "./a2a-relay.ts";

type Headers = Readonly<Record<string, string>>;
type Params = Readonly<Record<string, unknown>>;

export type AskedOperation = Extract<
  A2aOperation,
  "send" | "stream" | "get" | "list" | "cancel" | "subscribe" | "push-create" | "extended-card"
>;

/** How a request was refused, as far as the binding says it. */
export interface Refusal {
  /** Of JSON-RPC, of HTTP, or of gRPC. */
  readonly code: number;
  /** Absent on gRPC. */
  readonly httpStatus?: number;
  readonly message: string;
  readonly reason: string | undefined;
  readonly domain: string | undefined;
}

/** One of the three ways to say A2A 1.0 to the relay; `ask` answers with the refusal or with what came. */
export interface Binding {
  readonly name: "JSON-RPC" | "REST" | "gRPC";
  ask(relay: A2aRelay, agentId: string, asked: Asked): Promise<Refusal | { readonly result: unknown }>;
}

export interface Asked {
  readonly operation: AskedOperation;
  readonly params: Params;
  readonly headers?: Headers;
}

interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: readonly Info[];
  readonly details?: readonly Info[];
}

interface Info {
  readonly reason?: string;
  readonly domain?: string;
}

const JSON_RPC: Binding = {
  name: "JSON-RPC",
  ask: async (relay, agentId, { operation, params, headers }) => {
    const body = { jsonrpc: "2.0", id: 1, method: V1_DIALECT.methods[operation], params };
    const { status, json, text } = await relay.call("POST", `/agents/${agentId}/a2a`, body, headers);
    const { error, result = text } = (json ?? {}) as {
      readonly error?: ErrorBody;
      readonly result?: unknown;
    };
    return error === undefined ? { result } : { ...refusalOf(error, error.data), httpStatus: status };
  },
};

const REST: Binding = {
  name: "REST",
  ask: async (relay, agentId, { operation, params, headers }) => {
    const [method, path, body] = restOf(operation, params);
    const { status, json, text } = await relay.call(method, `/agents/${agentId}/a2a/${path}`, body, headers);
    const { error } = (json ?? {}) as { readonly error?: ErrorBody };
    return error === undefined
      ? { result: json ?? text }
      : { ...refusalOf(error, error.details), httpStatus: status };
  },
};

const GRPC: Binding = {
  name: "gRPC",
  ask: (relay, agentId, asked) =>
    askGrpc(relay.grpcAddress, { ...asked, params: { ...asked.params, tenant: agentId } }),
};

export const BINDINGS: readonly Binding[] = [JSON_RPC, REST, GRPC];

export function isRefusal(answer: Refusal | { readonly result: unknown }): answer is Refusal {
  return "reason" in answer;
}

function restOf(operation: AskedOperation, params: Params): [method: string, path: string, body?: unknown] {
  const { id, taskId, ...rest } = params;
  const task = encodeURIComponent(String(id));
  switch (operation) {
    case "send":
      return ["POST", "message:send", params];
    case "stream":
      return ["POST", "message:stream", params];
    case "get":
      return ["GET", `tasks/${task}`];
    case "list":
      return ["GET", `tasks?${new URLSearchParams(rest as Record<string, string>).toString()}`];
    case "cancel":
      return ["POST", `tasks/${task}:cancel`, {}];
    case "subscribe":
      return ["POST", `tasks/${task}:subscribe`];
    case "push-create":
      return ["POST", `tasks/${encodeURIComponent(String(taskId))}/pushNotificationConfigs`, rest];
    default:
      return ["GET", "extendedAgentCard"];
  }
}

const GRPC_METHODS = {
  send: [A2AService.sendMessage, SendMessageRequest],
  stream: [A2AService.sendStreamingMessage, SendMessageRequest],
  get: [A2AService.getTask, GetTaskRequest],
  list: [A2AService.listTasks, ListTasksRequest],
  cancel: [A2AService.cancelTask, CancelTaskRequest],
  subscribe: [A2AService.subscribeToTask, SubscribeToTaskRequest],
  "push-create": [A2AService.createTaskPushNotificationConfig, TaskPushNotificationConfig],
  "extended-card": [A2AService.getExtendedAgentCard, GetExtendedAgentCardRequest],
} as const;

/** Streams are answered with their first event. */
export async function askGrpc(
  address: string,
  { operation, params, headers = {} }: Asked,
  options: ChannelOptions = {},
): Promise<Refusal | { readonly result: unknown }> {
  const client = new Client(address, credentials.createInsecure(), options);
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const [method, codec] = GRPC_METHODS[operation];
  const write = method.requestSerialize as (value: unknown) => Buffer;
  const read = method.responseDeserialize as (bytes: Buffer) => unknown;
  const request: unknown = codec.fromJSON(params);
  try {
    return await new Promise((resolve) => {
      const refuse = (error: ServiceError): void => resolve(refusalOfGrpc(error));
      if (!method.responseStream) {
        client.makeUnaryRequest(method.path, write, read, request, metadata, (error, result) =>
          error === null ? resolve({ result }) : refuse(error),
        );
        return;
      }
      const stream = client.makeServerStreamRequest(method.path, write, read, request, metadata);
      stream.on("error", refuse);
      stream.once("data", (result: unknown) => {
        resolve({ result });
        stream.cancel();
      });
    });
  } finally {
    client.close();
  }
}

function refusalOf({ code, message }: ErrorBody, infos: readonly Info[] = []): Refusal {
  return { code, message, reason: infos[0]?.reason, domain: infos[0]?.domain };
}

function refusalOfGrpc({ code, details: message, metadata }: ServiceError): Refusal {
  const [bytes] = metadata.get("grpc-status-details-bin");
  const { reason, domain } = bytes instanceof Buffer ? errorInfoIn(bytes) : {};
  return { code, message, reason, domain };
}

/** `google.rpc.Status` holds in field 3 an `Any` whose field 2 is the ErrorInfo: reason and domain come first. */
function errorInfoIn(status: Uint8Array): Info {
  const [any] = fieldOf(status, 3);
  const [info] = any === undefined ? [] : fieldOf(any, 2);
  const textOf = (number: number): string =>
    new TextDecoder().decode(fieldOf(info ?? new Uint8Array(), number)[0]);
  return { reason: textOf(1), domain: textOf(2) };
}

function fieldOf(message: Uint8Array, wanted: number): readonly Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === wanted) found.push(reader.bytes());
    else reader.skip(type);
  }
  return found;
}
