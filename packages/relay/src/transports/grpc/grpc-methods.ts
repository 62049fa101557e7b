import {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  SendMessageResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import type { A2aOperation } from "@a2a-relay/protocol";

interface RequestCodec {
  toJSON(message: never): unknown;
}

interface ResultCodec {
  fromJSON(json: unknown): unknown;
}

export interface UnaryMethod {
  readonly operation: A2aOperation;
  readonly request: RequestCodec;
  /** Absent: the answer is empty. */
  readonly result?: ResultCodec;
}

/** The methods of `lf.a2a.v1.A2AService` that are answered once. */
export const UNARY_METHODS: Readonly<Record<UnaryName, UnaryMethod>> = {
  sendMessage: { operation: "send", request: SendMessageRequest, result: SendMessageResponse },
  getTask: { operation: "get", request: GetTaskRequest, result: Task },
  listTasks: { operation: "list", request: ListTasksRequest, result: ListTasksResponse },
  cancelTask: { operation: "cancel", request: CancelTaskRequest, result: Task },
  createTaskPushNotificationConfig: {
    operation: "push-create",
    request: TaskPushNotificationConfig,
    result: TaskPushNotificationConfig,
  },
  getTaskPushNotificationConfig: {
    operation: "push-get",
    request: GetTaskPushNotificationConfigRequest,
    result: TaskPushNotificationConfig,
  },
  listTaskPushNotificationConfigs: {
    operation: "push-list",
    request: ListTaskPushNotificationConfigsRequest,
    result: ListTaskPushNotificationConfigsResponse,
  },
  deleteTaskPushNotificationConfig: {
    operation: "push-delete",
    request: DeleteTaskPushNotificationConfigRequest,
  },
  getExtendedAgentCard: {
    operation: "extended-card",
    request: GetExtendedAgentCardRequest,
    result: AgentCard,
  },
};

type UnaryName =
  | "sendMessage"
  | "getTask"
  | "listTasks"
  | "cancelTask"
  | "createTaskPushNotificationConfig"
  | "getTaskPushNotificationConfig"
  | "listTaskPushNotificationConfigs"
  | "deleteTaskPushNotificationConfig"
  | "getExtendedAgentCard";

interface StreamMethod {
  readonly operation: A2aOperation;
  readonly request: RequestCodec;
}

export const STREAM_METHODS: Readonly<Record<"sendStreamingMessage" | "subscribeToTask", StreamMethod>> = {
  sendStreamingMessage: { operation: "stream", request: SendMessageRequest },
  subscribeToTask: { operation: "subscribe", request: SubscribeToTaskRequest },
};
