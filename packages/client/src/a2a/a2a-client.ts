import {
  a2aEndpoints,
  A2aError,
  type A2aOperation,
  type A2aPushConfig,
  type A2aSendResult,
  type A2aTask,
  type A2aTaskList,
  type AgentCard,
  type JsonObject,
  pathOf,
} from "@a2a-relay/protocol";
import type { CallOptions } from "../http/http-exchange.ts";
import type { FilledClientOptions } from "../http/relay-client-options.ts";
import {
  type A2AClientOptions,
  fillA2AClientOptions,
  type FilledA2AClientOptions,
} from "./a2a-client-options.ts";
import { A2aHttp } from "./a2a-http.ts";
import {
  type A2aCardOptions,
  type A2aGetTaskOptions,
  type A2aMessageInput,
  type A2aPushConfigInput,
  type A2aSendOptions,
  type A2aSubscribeOptions,
  type A2aTasksQuery,
  defined,
  sendParams,
} from "./a2a-requests.ts";
import type { A2aCallOptions, A2aOpenOptions } from "./agent-binding.ts";
import {
  type A2aEventSource,
  type A2aStreamEvent,
  isSettledState,
  stateOf,
  SingleEventSource,
} from "./stream-event.ts";
import { AgentConnection } from "./agent-connection.ts";
import { FollowedTask, type FollowedTaskParts, PolledTask } from "./followed-task.ts";

/**
 * A client for any A2A agent, in any version and binding of its card. Its arguments and results are A2A 1.0. Errors are
 * RelayErrors; those of the agent itself are A2aErrors.
 */
export class A2AClient {
  readonly #options: FilledA2AClientOptions;
  readonly #connection: AgentConnection;

  constructor(options: string | A2AClientOptions) {
    this.#options = fillA2AClientOptions(options);
    this.#connection = new AgentConnection(this.#options, new A2aHttp(this.#options));
  }

  /** The agent's card, in 1.0. Requested each time, with the ETag of the last one. */
  async getAgentCard(options: A2aCardOptions = {}): Promise<AgentCard> {
    if (options.extended === true) return this.#call("extended-card", {}, options);
    return this.#connection.refreshCard(options);
  }

  /** Waits until the task is settled, or with `returnImmediately` until it has begun. */
  async sendMessage(message: A2aMessageInput, options: A2aSendOptions = {}): Promise<A2aSendResult> {
    // The binding has checked that it is one of the two.
    return (await this.#call("send", sendParams(message, options), options)) as A2aSendResult;
  }

  /**
   * Sends, and yields events until the task is settled. Resumes a broken connection; then, or with an agent without
   * streams, an event `task` is the whole current task.
   */
  async *streamMessage(
    message: A2aMessageInput,
    options: A2aSendOptions = {},
  ): AsyncGenerator<A2aStreamEvent, void, void> {
    const begin = (): Promise<A2aEventSource> => this.#open("stream", sendParams(message, options), options);
    const fallBack = (): Promise<A2aEventSource> => this.#sendAndPoll(message, options);
    yield* this.#follow({ begin, fallBack, endsInterrupted: true }, options);
  }

  async getTask(taskId: string, options: A2aGetTaskOptions = {}): Promise<A2aTask> {
    const { historyLength } = options;
    return asTask(await this.#call("get", defined({ id: taskId, historyLength }), options));
  }

  async listTasks(query: A2aTasksQuery = {}, options: CallOptions = {}): Promise<A2aTaskList> {
    const list = (await this.#call("list", defined(query), options)) as Partial<A2aTaskList>;
    const { tasks = [] } = list;
    return { nextPageToken: "", pageSize: tasks.length, totalSize: tasks.length, ...list, tasks };
  }

  async cancelTask(taskId: string, options: CallOptions = {}): Promise<A2aTask> {
    return asTask(await this.#call("cancel", { id: taskId }, options));
  }

  /**
   * The events of a task until it is over, first the current task. Continues while the agent waits for input. Yields
   * only the task if it is over already.
   */
  async *subscribe(
    taskId: string,
    options: A2aSubscribeOptions = {},
  ): AsyncGenerator<A2aStreamEvent, void, void> {
    const begin = (): Promise<A2aEventSource> => this.#open("subscribe", { id: taskId }, options);
    const fallBack = async (): Promise<A2aEventSource> => this.#poll(taskId, options);
    const { lastEventId } = options;
    yield* this.#follow({ begin, fallBack, endsInterrupted: false, taskId, lastEventId }, options);
  }

  /** The task once it is over, or waits for input. */
  async waitFor(taskId: string, options: A2aGetTaskOptions = {}): Promise<A2aTask> {
    for (;;) {
      const task = await this.getTask(taskId, options);
      if (isSettledState(task.status.state)) return task;
      for await (const event of this.subscribe(taskId, options)) {
        if (isSettledState(stateOf(event))) break;
      }
    }
  }

  async createPushConfig(
    config: A2aPushConfigInput & { readonly taskId: string },
    options: CallOptions = {},
  ): Promise<A2aPushConfig> {
    return asPushConfig(await this.#call("push-create", defined(config), options));
  }

  async getPushConfig(taskId: string, id: string, options: CallOptions = {}): Promise<A2aPushConfig> {
    return asPushConfig(await this.#call("push-get", { taskId, id }, options));
  }

  async listPushConfigs(taskId: string, options: CallOptions = {}): Promise<readonly A2aPushConfig[]> {
    const { configs } = await this.#call("push-list", { taskId }, options);
    return configs as readonly A2aPushConfig[];
  }

  async deletePushConfig(taskId: string, id: string, options: CallOptions = {}): Promise<void> {
    await this.#call("push-delete", { taskId, id }, options);
  }

  #call(operation: A2aOperation, params: JsonObject, options: A2aCallOptions): Promise<JsonObject> {
    return this.#connection.use((binding) => binding.call(operation, params, options), options);
  }

  async #open(
    operation: "stream" | "subscribe",
    params: JsonObject,
    options: A2aOpenOptions,
  ): Promise<A2aEventSource> {
    if (!(await this.#connection.canStream(options))) {
      throw new A2aError("UnsupportedOperation", "the agent's card says that it has no streams");
    }
    return this.#connection.use((binding) => binding.open(operation, params, options), options);
  }

  async #sendAndPoll(message: A2aMessageInput, options: A2aSendOptions): Promise<A2aEventSource> {
    const { task, message: answer } = await this.sendMessage(message, {
      ...options,
      returnImmediately: true,
    });
    return task === undefined
      ? new SingleEventSource({ message: answer })
      : this.#poll(task.id, options, { task });
  }

  #poll(taskId: string, options: CallOptions, first?: A2aStreamEvent): PolledTask {
    const { pollMs } = this.#options;
    const getTask = (id: string): Promise<A2aTask> => this.getTask(id, { signal: options.signal });
    return new PolledTask({ taskId, getTask, pollMs, first }, options);
  }

  #follow(
    parts: Pick<FollowedTaskParts, "begin" | "fallBack" | "endsInterrupted" | "taskId" | "lastEventId">,
    options: CallOptions,
  ): AsyncGenerator<A2aStreamEvent, void, void> {
    const { retries, delays } = this.#options;
    const { signal } = options;
    const followed = new FollowedTask(
      {
        ...parts,
        retries,
        delays,
        subscribe: (id, from) => this.#open("subscribe", { id }, from),
        poll: (id) => this.#poll(id, { signal }),
      },
      { signal },
    );
    return followed.events();
  }
}

/** The binding has checked the members that the client uses. */
function asTask(result: JsonObject): A2aTask {
  return result as A2aTask;
}

function asPushConfig(result: JsonObject): A2aPushConfig {
  return result as A2aPushConfig;
}

/** A client for an agent of a relay. It needs no card: the address and the version are fixed. */
export function createAgentClient(relay: FilledClientOptions, agentId: string): A2AClient {
  const { apiKey, fetch, retries, retryDelayMs, retryDelayMsMax } = relay;
  const url = relay.url + pathOf(a2aEndpoints.a2a.agent, { agent_id: agentId });
  const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  const card = { name: agentId, supportedInterfaces, capabilities: { streaming: true } };
  return new A2AClient({ card, apiKey, fetch, retries, retryDelayMs, retryDelayMsMax });
}
