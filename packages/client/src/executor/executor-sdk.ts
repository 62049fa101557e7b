import type {
  AgentCard,
  Artifact,
  Message,
  SendMessageRequest,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent,
} from "@a2a-js/sdk";
import type { DefaultExecutionEventBus, RequestContext, ServerCallContext } from "@a2a-js/sdk/server";
import { RelayError } from "@a2a-relay/protocol";

/** Converts one type of the SDK from and to JSON. */
interface Form<T> {
  fromJSON(json: object): T;
  toJSON(value: T): unknown;
}

/** The used part of the A2A SDK. */
export interface ExecutorSdk {
  readonly AgentCard: Form<AgentCard>;
  readonly Artifact: Form<Artifact>;
  readonly Message: Form<Message>;
  readonly SendMessageRequest: Form<SendMessageRequest>;
  readonly Task: Form<Task>;
  readonly TaskArtifactUpdateEvent: Form<TaskArtifactUpdateEvent>;
  readonly TaskStatusUpdateEvent: Form<TaskStatusUpdateEvent>;
  readonly DefaultExecutionEventBus: typeof DefaultExecutionEventBus;
  readonly RequestContext: typeof RequestContext;
  readonly ServerCallContext: typeof ServerCallContext;
}

/** Loads the SDK on use: only programs with an executor have it. */
export async function loadExecutorSdk(): Promise<ExecutorSdk> {
  try {
    // oxlint-disable-next-line no-restricted-imports -- the only import of the SDK, loaded on use
    const [forms, server] = await Promise.all([import("@a2a-js/sdk"), import("@a2a-js/sdk/server")]);
    return { ...forms, ...server };
  } catch (cause) {
    throw new RelayError(
      "invalid_argument",
      "an AgentExecutor needs the A2A SDK, which could not be loaded; run `npm install @a2a-js/sdk`",
      { cause },
    );
  }
}
