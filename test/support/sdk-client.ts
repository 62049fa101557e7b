import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import type {
  A2aArtifactUpdate,
  A2aMessage,
  A2aPushConfig,
  A2aStatusUpdate,
  A2aTask,
  A2aTaskList,
} from "@a2a-relay/protocol";
import type { A2aRelay } from "./a2a-relay.ts";

export interface SdkClientKind {
  readonly name: string;
  readonly binding: "JSONRPC" | "HTTP+JSON" | "GRPC";
  readonly version: "1.0" | "0.3";
}

/** The official client in every form in which it is used. */
export const SDK_CLIENTS: readonly SdkClientKind[] = [
  { name: "JSON-RPC 1.0", binding: "JSONRPC", version: "1.0" },
  { name: "REST 1.0", binding: "HTTP+JSON", version: "1.0" },
  { name: "gRPC 1.0", binding: "GRPC", version: "1.0" },
  { name: "JSON-RPC 0.3", binding: "JSONRPC", version: "0.3" },
  { name: "REST 0.3", binding: "HTTP+JSON", version: "0.3" },
];

export interface SentJson {
  readonly task?: A2aTask;
  readonly message?: A2aMessage;
}

export interface EventJson extends SentJson {
  readonly statusUpdate?: A2aStatusUpdate;
  readonly artifactUpdate?: A2aArtifactUpdate;
}

interface Asking {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The SDK's client with JSON of 1.0 before and behind it, so that all five forms can be compared. */
export class SdkClient {
  readonly #client: Client;
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(client: Client, headers: Readonly<Record<string, string>>) {
    this.#client = client;
    this.#headers = headers;
  }

  static async open(
    relay: A2aRelay,
    agentId: string,
    { binding, version }: SdkClientKind,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<SdkClient> {
    const isGrpc = binding === "GRPC";
    const address = {
      url: isGrpc ? relay.grpcAddress : `${relay.url}/agents/${agentId}/a2a`,
      protocolBinding: binding,
      protocolVersion: version,
      ...(isGrpc ? { tenant: agentId } : {}),
    };
    const card = AgentCard.fromJSON({ ...CARD, name: agentId, supportedInterfaces: [address] });
    const legacyCompat = { enabled: version === "0.3" };
    const transports = [
      new JsonRpcTransportFactory({ legacyCompat }),
      new RestTransportFactory({ legacyCompat }),
      new GrpcTransportFactory(),
    ];
    return new SdkClient(await new ClientFactory({ transports }).createFromAgentCard(card), headers);
  }

  async send(params: object, asking: Asking = {}): Promise<SentJson> {
    const sent = await this.#client.sendMessage(SendMessageRequest.fromJSON(params), this.#with(asking));
    return "messageId" in sent
      ? { message: Message.toJSON(sent) as A2aMessage }
      : { task: Task.toJSON(sent) as A2aTask };
  }

  async *stream(params: object, asking: Asking = {}): AsyncGenerator<EventJson> {
    const events = this.#client.sendMessageStream(SendMessageRequest.fromJSON(params), this.#with(asking));
    for await (const event of events) yield StreamResponse.toJSON(event) as EventJson;
  }

  async *subscribe(id: string, asking: Asking = {}): AsyncGenerator<EventJson> {
    const events = this.#client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }), this.#with(asking));
    for await (const event of events) yield StreamResponse.toJSON(event) as EventJson;
  }

  async get(id: string, historyLength?: number, asking: Asking = {}): Promise<A2aTask> {
    const request = GetTaskRequest.fromJSON({
      id,
      ...(historyLength === undefined ? {} : { historyLength }),
    });
    return Task.toJSON(await this.#client.getTask(request, this.#with(asking))) as A2aTask;
  }

  async list(params: object, asking: Asking = {}): Promise<A2aTaskList> {
    const listed = await this.#client.listTasks(ListTasksRequest.fromJSON(params), this.#with(asking));
    return ListTasksResponse.toJSON(listed) as A2aTaskList;
  }

  async cancel(id: string, asking: Asking = {}): Promise<A2aTask> {
    return Task.toJSON(
      await this.#client.cancelTask(CancelTaskRequest.fromJSON({ id }), this.#with(asking)),
    ) as A2aTask;
  }

  async createPush(config: object): Promise<A2aPushConfig> {
    const wish = TaskPushNotificationConfig.fromJSON(config);
    const made = await this.#client.createTaskPushNotificationConfig(wish, this.#with({}));
    return TaskPushNotificationConfig.toJSON(made) as A2aPushConfig;
  }

  async getPush(taskId: string, id: string): Promise<A2aPushConfig> {
    const request = GetTaskPushNotificationConfigRequest.fromJSON({ taskId, id });
    const found = await this.#client.getTaskPushNotificationConfig(request, this.#with({}));
    return TaskPushNotificationConfig.toJSON(found) as A2aPushConfig;
  }

  async listPushes(taskId: string): Promise<readonly A2aPushConfig[]> {
    const request = ListTaskPushNotificationConfigsRequest.fromJSON({ taskId });
    const { configs } = await this.#client.listTaskPushNotificationConfig(request, this.#with({}));
    return configs.map((config) => TaskPushNotificationConfig.toJSON(config) as A2aPushConfig);
  }

  async deletePush(taskId: string, id: string): Promise<void> {
    const request = DeleteTaskPushNotificationConfigRequest.fromJSON({ taskId, id });
    await this.#client.deleteTaskPushNotificationConfig(request, this.#with({}));
  }

  #with({ signal, headers }: Asking): {
    readonly signal?: AbortSignal;
    readonly serviceParameters: Record<string, string>;
  } {
    return {
      ...(signal === undefined ? {} : { signal }),
      serviceParameters: { ...this.#headers, ...headers },
    };
  }
}

/** What a client needs to know of an agent; the address is the caller's business. */
const CARD = {
  description: "谁都可以问",
  version: "1",
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

let count = 0;

/** A message of 1.0 with an id that no other one has. */
export function userMessage(text: string, more: object = {}): { readonly message: object } {
  count += 1;
  return {
    message: { messageId: `m-${process.pid}-${count}`, role: "ROLE_USER", parts: [{ text }], ...more },
  };
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
