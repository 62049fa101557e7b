import type { AgentExecutor, RequestContext } from "@a2a-js/sdk/server";
import { A2aError, type A2aTask, GUEST } from "@a2a-relay/protocol";
import type { AgentTask } from "../agent/agent-task.ts";
import type { BackgroundErrors } from "../agent/background-errors.ts";
import type { RelayClient } from "../client/relay-client.ts";
import type { ExecutorSdk } from "./executor-sdk.ts";

/** The key of the `AgentTask` in the `state` of an executor's request `context`. */
export const RELAY_TASK_STATE = "a2a-relay.task";

export interface ExecutorTurnParts {
  readonly sdk: ExecutorSdk;
  readonly executor: AgentExecutor;
  readonly client: RelayClient;
  readonly agentId: string;
  readonly errors: BackgroundErrors;
}

const REFERENCE_TASKS_MAX = 20;

/** The same context as the SDK's server makes, with the current task if it was begun before. */
export async function createRequestContext(
  parts: ExecutorTurnParts,
  task: AgentTask,
): Promise<RequestContext> {
  const { sdk } = parts;
  const { message, metadata, acceptedOutputModes } = task.a2a;
  const request = sdk.SendMessageRequest.fromJSON({
    message,
    metadata,
    configuration: { acceptedOutputModes },
  });
  const extensions = textsIn(message["extensions"]);
  const context = new sdk.ServerCallContext({
    requestedVersion: "1.0",
    user: { isAuthenticated: task.requester !== GUEST, userName: task.requester },
    ...(extensions.length === 0 ? {} : { requestedExtensions: [...extensions] }),
    state: new Map<string, unknown>([[RELAY_TASK_STATE, task]]),
  });
  const isBegun = task.isFollowUp || task.attempt > 1;
  const begun = isBegun ? sdk.Task.fromJSON(await task.a2aTask()) : undefined;
  const references = await referencedTasks(parts, task, textsIn(message["referenceTaskIds"]));
  const referenced = references?.map((reference) => sdk.Task.fromJSON(reference));
  return new sdk.RequestContext(request, task.id, task.view.thread_id, context, begun, referenced);
}

/** Only tasks that this agent may read. */
async function referencedTasks(
  { client, agentId }: ExecutorTurnParts,
  { signal }: AgentTask,
  ids: readonly string[],
): Promise<readonly A2aTask[] | undefined> {
  if (ids.length === 0) return undefined;
  const found: A2aTask[] = [];
  for (const id of ids.slice(0, REFERENCE_TASKS_MAX)) {
    try {
      found.push(await client.a2a(agentId).getTask(id, { signal }));
    } catch (reason) {
      if (!(reason instanceof A2aError)) throw reason;
    }
  }
  return found;
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
