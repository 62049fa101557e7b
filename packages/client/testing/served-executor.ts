import { Artifact, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import type { A2aTask } from "@a2a-relay/protocol";
import type { A2AClient } from "../src/a2a/a2a-client.ts";
import { type ExecutorAgentOptions, serveExecutor } from "../src/executor/executor-agent.ts";
import { type AgentSetup, setupAgent, WORKER } from "./agent-setup.ts";

export interface Served extends AsyncDisposable {
  readonly setup: AgentSetup;
  readonly caller: A2AClient;
  readonly errors: string[];
  ask(text: string, more?: object): Promise<A2aTask>;
}

/** An executor behind a relay, with nothing but the one line. */
export async function serve(
  executor: AgentExecutor,
  options: Partial<ExecutorAgentOptions> = {},
): Promise<Served> {
  const setup = await setupAgent();
  const errors: string[] = [];
  const onError = (error: Error): void => void errors.push(error.message);
  const { url } = setup.relay.wire;
  const shared = { transport: "poll", retryDelayMs: 5, retryDelayMsMax: 20, retries: 0, onError } as const;
  const running = await serveExecutor(executor, { url, agentId: WORKER, ...shared, ...options });
  const caller = setup.direct.a2a(WORKER);
  return {
    setup,
    caller,
    errors,
    async ask(text, more = {}) {
      const { task } = await caller.sendMessage({ parts: [{ text }], ...more });
      if (task === undefined) throw new Error("answered with a message");
      return task;
    },
    async [Symbol.asyncDispose]() {
      await running.stop({ timeoutMs: 0 });
      await setup[Symbol.asyncDispose]();
    },
  };
}

/** An executor that is a function. */
export function executorOf(
  execute: (context: RequestContext, says: Says) => Promise<void> | void,
  cancelTask: AgentExecutor["cancelTask"] = async () => {},
): AgentExecutor {
  return {
    execute: async (context, bus) => execute(context, new Says(context, bus)),
    cancelTask,
  };
}

/** What an executor publishes, in short words. */
export class Says {
  readonly bus: ExecutionEventBus;
  readonly #ids: { readonly taskId: string; readonly contextId: string };

  constructor({ taskId, contextId }: RequestContext, bus: ExecutionEventBus) {
    this.bus = bus;
    this.#ids = { taskId, contextId };
  }

  status(state: string, text?: string, more: object = {}): void {
    const message =
      text === undefined ? undefined : { messageId: `m-${text}`, role: "ROLE_AGENT", parts: [{ text }] };
    const event = { ...this.#ids, status: { state: `TASK_STATE_${state}`, message }, ...more };
    this.bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(event)));
  }

  artifact(artifactId: string, text: string, how: object = {}): void {
    const artifact = Artifact.toJSON(
      Artifact.fromJSON({ artifactId, name: "译文", parts: text === "" ? [] : [{ text }] }),
    );
    const event = { ...this.#ids, artifact, ...how };
    this.bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
  }

  task(more: object): void {
    const { taskId: id, contextId } = this.#ids;
    this.bus.publish(AgentEvent.task(Task.fromJSON({ id, contextId, ...more })));
  }
}

export function stateOf({ status }: A2aTask): string {
  return status.state.slice("TASK_STATE_".length);
}

/** The first text of what was said with the status. */
export function said({ status }: A2aTask): unknown {
  return status.message?.parts[0]?.["text"];
}
